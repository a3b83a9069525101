#!/usr/bin/env python3
"""Every figure that two surfaces show is equal in both: the report's text and JSON, the page's answers, the agents' answers, `vram leaks`,
`vram tune`.

usage: figures.py VRAM FILE|FOLDER...

The others are compared with the report's JSON: peaks and their moments, reserved and live bytes at the end, the size of a failed request
with its room and the free bytes, the device, the cure and its needs. Bytes are compared exactly where a surface shows bytes, else
rounded.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile

import inputs
import surfaces

ENDINGS = {".pickle", ".pkl", ".json", ".vram", ".html", ".csv"}
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def rounded(value):
    """Formats bytes as allocator/base/text.c does."""
    unit = 0
    while value >= (1024.0 if unit == 0 else 1023.95) and unit + 1 < len(UNITS):
        value, unit = value / 1024.0, unit + 1
    return f"{value:.{1 if unit else 0}f} {UNITS[unit]}"


def exact(value):
    """Formats bytes as answers to agents do."""
    return f"{value:,} B ({rounded(value)})" if value >= 1024 else f"{value:,} B"


class Findings(list):
    def equal(self, what, one, other):
        if one != other:
            self.append(f"{what}: {one!r}, the report's JSON {other!r}")

    def has(self, what, wanted, text):
        if wanted not in text:
            self.append(f"{what} does not say {wanted!r}: {text[:700]!r}")


def devices_of(report):
    """Yields (number, whether it is the host, facts) of the report's devices, with the numbers of the other surfaces."""
    yield from ((int(number), False, device) for number, device in report["devices"].items())
    if "host" in report:
        yield report["host"].get("device"), True, report["host"]


# --- the page ----------------------------------------------------------------------------------------------------------------------------------------


def check_list(found, listed, report):
    facts = {host or number: device for number, host, device in devices_of(report)}
    found.equal("page: devices", {shown["host"] or shown["device"] for shown in listed}, set(facts))
    for shown in listed:
        device = facts.get(shown["host"] or shown["device"])
        if device is None:
            continue
        for name, value in (("events", device["events"]), ("peak_bytes", device["allocated"]["peak_bytes"]), ("peak_event", device["allocated"]["peak_event_index"]),
                            ("active_peak_bytes", device["active"]["peak_bytes"]), ("active_peak_event", device["active"]["peak_event_index"])):
            found.equal(f"page: {name} of device {shown['device']}", shown[name], value)
        if device["segments"]:
            found.equal(f"page: reserved at the end of device {shown['device']}", shown["reserved_end_bytes"], device["reserved"]["end_bytes"])


def check_page_device(found, page, number, device, report):
    about = f"device={number}"
    why = page.ask(f"oom?{about}")
    for name in ("oom", "oom_causes"):
        found.equal(f"page: {name} of device {number}", why[name], device[name])
    found.equal(f"page: peak of device {number}", (why["peak_bytes"], why["peak_event"]), (device["allocated"]["peak_bytes"], device["allocated"]["peak_event_index"]))
    if not device["oom"]:
        found.equal(f"page: what stands out at the peak of device {number}", why.get("demand"), device.get("demand"))
    cure = next((one for one in report.get("cures", []) if one["device"] == number), None)
    found.equal(f"page: cure of device {number}", page.ask(f"cure?{about}")["cure"], cure)
    saving = next((one for one in report.get("paged", []) if one["device"] == number), None)
    if saving is not None:
        found.equal(f"page: paged memory of device {number}", page.ask(f"paged?{about}")["paged"], saving)


def check_page(found, vram, path, report):
    page = surfaces.Page(vram, path)
    try:
        check_list(found, page.ask("list")["recordings"][0]["devices"], report)
        found.equal("page: notes", [note["text"] for note in page.ask("notes")["notes"]], [note["text"] for note in report["contradictions"] + report["missing"]])
        shown = page.ask("list")["recordings"][0]["devices"]
        for number, host, device in devices_of(report):
            asked = next((one["device"] for one in shown if one["host"]), None) if host else number
            check_page_device(found, page, asked, device, report)
        return page.ask("leaks") if report["devices"] or "host" in report else None
    finally:
        page.end()


# --- the text ------------------------------------------------------------------------------------------------------------------------------------------


def rows_of(part, name):
    """Returns the cells, separated by two spaces, of the first row that begins with the name."""
    row = re.search(rf"^ +{name}  +(.*)$", part, re.M)
    return [cell for cell in re.split(r"  +", row[1].strip())] if row else []


def moment(device, event):
    if device["events"] == 0:
        return "in the final state"
    return "before the first event" if event < 0 else f"after event {event:,} of {device['events']:,}"


def check_text_device(found, where, part, device):
    live = device["allocated"]
    wanted = [rounded(live["peak_bytes"]), moment(device, live["peak_event_index"]), rounded(live["start_bytes"]), rounded(live["end_bytes"]), f"{live['live_count_at_peak']:,}"]
    found.equal(f"{where}: allocated", rows_of(part, "allocated"), wanted)
    held = rows_of(part, "reserved")
    if held:
        reserved = device["reserved"]
        found.equal(f"{where}: reserved", held, [rounded(max(reserved["peak_bytes"], 0)), moment(device, reserved["peak_event_index"]), rounded(max(reserved["start_bytes"], 0)), rounded(max(reserved["end_bytes"], 0))])
    if not device["oom"]:
        return
    failed, cause, flat = device["oom"][-1], device["oom_causes"][-1], " ".join(part.split())
    for wanted in (f"{rounded(failed['size'])} requested on stream", cause["text"], *(remedy["text"] for remedy in (cause.get("demand") or {}).get("remedies", []))):
        found.has(where, " ".join(wanted.split()), flat)
    shares = [("free blocks", cause["usable_bytes"]), ("other streams", cause["other_stream_bytes"]), ("other pools", cause["private_pool_bytes"]), ("waiting", cause["pending_bytes"]),
              ("available" if cause["text"].startswith("pinned host memory") else "driver", failed["device_free"])]
    for name, value in shares:
        if value:
            found.equal(f"{where}: {name}", (re.search(rf"^ +\S  {name} +(\S+ \w+)  ", part, re.M) or [None, None])[1], rounded(value))


def check_text(found, vram, path, report):
    text = surfaces.report(vram, path)
    parts = re.split(r"^(Device \d+|Pinned host memory) =+$", text, flags=re.M)
    titles = {f"Device {number}" if not host else "Pinned host memory": device for number, host, device in devices_of(report)}
    found.equal("text: devices", sorted(parts[1::2]), sorted(titles))
    for title, part in zip(parts[1::2], parts[2::2]):
        if title in titles:
            check_text_device(found, f"text, {title}", part, titles[title])
    flat = " ".join(text.split())
    for cure in report.get("cures", []):
        found.has("text", " ".join(cure["text"].split()), flat)
        if cure["conf"]:
            found.has("text", f"{cure['variable']}={cure['conf']}", flat)
    for note in report["advice"] + report["missing"] + report["contradictions"]:
        found.has("text", " ".join(note["text"].split()), flat)


# --- agents --------------------------------------------------------------------------------------------------------------------------------------------


def check_agent_oom(found, where, why, device):
    failed, cause = device["oom"][-1], device["oom_causes"][-1]
    found.has(where, f"event {failed['index']}: {exact(failed['size'])} requested on stream {cause['stream']}", why)
    for name, word in (("device_free", "available to the system" if cause["text"].startswith("pinned host memory") else "free in the driver"),):
        if failed[name] is not None:
            found.has(where, f"{word} {exact(failed[name])}", why)
    found.has(where, f"why: {cause['text']}", why)
    found.has(where, f"held {exact(cause['reserved_bytes'])}: in use {exact(cause['allocated_bytes'])}, waiting for streams {exact(cause['pending_bytes'])}, free {exact(cause['free_bytes'])}", why)
    found.has(where, f"free for this request {exact(cause['usable_bytes'])}", why)
    if cause["limit_bytes"]:
        found.has(where, f"the process may hold {exact(cause['limit_bytes'])}", why)


def check_agent_cure(found, where, said, cure, device):
    if cure["room_bytes"]:
        found.has(where, f"{exact(cure['room_bytes'])} was available; at most {exact(cure['demand_bytes'])} was live at once", said)
    if cure["verdict"] == "setting":
        found.has(where, f"cure: {cure['variable']}={cure['conf']}\n", said)
        found.has(where, f"it holds at most {exact(cure['held_bytes'])}" + (f" and needs {exact(cure['needed_bytes'])}" if cure["needed_bytes"] else ""), said)
    elif cure["verdict"] == "limit":
        found.has(where, f"at least {exact(cure['limit_at_least_bytes'])}", said)
    else:
        for remedy in (device["oom_causes"][-1].get("demand") or {}).get("remedies", [])[:1]:
            found.has(where, f"exactly {exact(remedy['saved_bytes'])} less, {exact(remedy['left_bytes'])} in total", said)


def check_agent(found, vram, path, report):
    numbers = [(number, device) for number, host, device in devices_of(report) if not host]
    calls = [(tool, {"file": path, "device": number}) for number, _ in numbers for tool in ("summary", "why", "cure")]
    answers = surfaces.agent_answers(vram, [("leaks", {"file": path}), *calls])
    for place, (number, device) in enumerate(numbers):
        summary, why, cure = answers[1 + 3 * place : 4 + 3 * place]
        live, reserved, where = device["allocated"], device["reserved"], f"mcp, device {number}"
        found.has(where, f"allocated: peak {exact(live['peak_bytes'])} in {live['live_count_at_peak']:,} allocation", summary)
        found.has(where, f"after event {live['peak_event_index']}; at the start {exact(live['start_bytes'])}, at the end {exact(live['end_bytes'])}", summary)
        if "reserved: peak" in summary:
            found.has(where, f"reserved: peak {exact(reserved['peak_bytes'])} after event {reserved['peak_event_index']}; at the end {exact(max(reserved['end_bytes'], 0))}", summary)
        if device["oom"]:
            check_agent_oom(found, f"{where}, why", why, device)
        for one in report.get("cures", []):
            if one["device"] == number:
                check_agent_cure(found, f"{where}, cure", cure, one, device)
        if len(report["devices"]) > 1:
            for answer in (summary, why):
                found.has(f"{where}, what to ask next", f'"device": {number}', re.sub(r"next: tune .*", f'"device": {number}', answer))  # asks about all devices
    return answers[0]


# --- leaks, settings ---------------------------------------------------------------------------------------------------------------------------------------


def check_leaks(found, vram, path, page, agent):
    ran = surfaces.run(vram, "leaks", "--json", path)
    if ran.returncode not in (0, 1) or page is None:
        return
    told = json.loads(ran.stdout)
    text = " ".join(surfaces.leaks(vram, path).split())
    for name in ("text", "steps_text", "answer", "leaks"):
        found.equal(f"leaks, page: {name}", page[name], told[name])
    for where, said in (("leaks", text), ("leaks, mcp", agent)):
        found.has(where, told["text"], said)
        found.has(where, told["steps_text"], said)


def check_tune(found, vram, path, report):
    if len(report["devices"]) != 1:
        return
    (device,), cures = report["devices"].values(), [cure for cure in report.get("cures", []) if cure["verdict"] == "setting"]
    room = ["--memory", f"{cures[-1]['room_bytes']}B"] if cures else []
    ran = surfaces.run(vram, "tune", "--json", *room, path)
    if ran.returncode not in (0, 1) or not ran.stdout:
        return
    tuned = json.loads(ran.stdout)
    if device["allocated"]["consistent"] and not device["oom"]:
        found.equal("tune: live", tuned["live_bytes"], device["allocated"]["peak_bytes"])
        found.equal("tune: active", tuned["active_bytes"], device["active"]["peak_bytes"])
    for cure in cures[-1:]:
        best = tuned["best"] or {}
        found.equal("tune: the cure, its need", (best.get("conf"), best.get("needed_bytes")), (cure["conf"], cure["needed_bytes"]))
        found.equal("tune: start", tuned["start"], cure["start"])


def check(vram, path):
    found = Findings()
    ran = surfaces.run(vram, "report", "--json", path)
    if ran.returncode == 3:  # not a recording; other tests check the message
        return found, 0
    report = json.loads(ran.stdout)
    page_leaks = check_page(found, vram, path, report)
    check_text(found, vram, path, report)
    agent_leaks = check_agent(found, vram, path, report)
    check_leaks(found, vram, path, page_leaks, agent_leaks)
    check_tune(found, vram, path, report)
    return found, len(report.get("cures", []))


def files_of(roots, folder):
    for root in map(pathlib.Path, roots):
        if str(root).startswith("made:"):
            yield inputs.path_of(str(root), dict.fromkeys(inputs.PLACES), folder, str(root)[5:])
        elif root.is_dir():
            yield from (str(path) for path in sorted(root.iterdir()) if ENDINGS & set(path.suffixes))
        elif root.exists():
            yield str(root)
        else:
            print(f"skipped: {root.name} is absent")


def main():
    vram, *roots = sys.argv[1:]
    wrong = cures = count = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        paths = list(files_of(roots, folder))
        for path, (found, cured) in zip(paths, pool.map(lambda path: check(os.path.abspath(vram), path), paths)):
            count, cures, wrong = count + 1, cures + cured, wrong + bool(found)
            print("\n".join(f"{os.path.basename(path)}: {line}" for line in found), end="\n" if found else "")
    print(f"{count} recordings, {cures} cures, {wrong} with unequal figures")
    return 1 if wrong or not cures else 0


if __name__ == "__main__":
    sys.exit(main())
