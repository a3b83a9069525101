// Settings: the allocator's settings, the meaning of each option, and the recording's notes about itself.
import { setSourceTemplate, sourceTemplate } from "../stack";
import type { App, View } from "../app";
import { add, clear, csvText, el } from "../dom";
import { Exact } from "../exact";
import { bytes, count, counted, duration } from "../format";
import type { State } from "../state";
import { visible } from "../visible";

type Setting = { key: string; value: unknown; meaning?: string; usual?: boolean; default?: unknown };
type Option = { key: string; value: string; default: string; usual: boolean; syntax: string; meaning: string };
type Facts = {
    recording: { name: string; bytes: number; form: string; generation: string; era: string; ending: string; keys: string[]; annotations: number; stacks: number; frames: number; modules: number };
    settings: Setting[];
    conf: string;
    options: Option[];
    device?: { device: number; host: boolean; events: number; events_with_frames: number; max_frames: number; has_times: boolean; times_monotonic: boolean; first_time_us?: number; last_time_us?: number; actions: { name: string; count: number; bytes: number }[]; streams: number };
};

const SIZES = new Set(["max_split_size"]);

function valueText(key: string, value: unknown): string {
    if (SIZES.has(key) && (typeof value === "number" || value instanceof Exact)) return Number(value) < 0 || Number(value) > 2 ** 60 ? "unlimited" : `${bytes(Number(value))} (${count(value as number)})`;
    if (value instanceof Exact) return String(value);
    if (typeof value === "string") return value === "" ? "(empty)" : value;
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
        const pairs = Object.entries(value);
        const set = pairs.filter(([, item]) => item !== 0);
        return set.length === 0 ? `none (${pairs.length} sizes)` : set.map(([name, item]) => `${visible(name)}: ${JSON.stringify(item)}`).join(", ");
    }
    return JSON.stringify(value);
}

const mark = (usual: boolean | undefined) => (usual === false ? el("span", { class: "badge" }, "changed") : "");

function paint(body: HTMLElement, facts: Facts): void {
    clear(body);
    add(body, el("h2", {}, "Settings in the recording"));
    if (facts.settings.length === 0) add(body, el("p", { class: "quiet-text" }, "The recording has no allocator settings: PyTorch has written them since 2.3. The values below assume the defaults."));
    else {
        const rows = facts.settings.map((item) => el("tr", { class: item.usual === false ? "differs" : "", "data-key": item.key }, el("td", {}, el("code", {}, item.key)), el("td", {}, valueText(item.key, item.value), " ", mark(item.usual)), el("td", { class: "quiet-text" }, item.default === undefined ? "" : valueText(item.key, item.default)), el("td", {}, item.meaning ?? "")));
        add(body, el("table", { class: "plain-table wide" }, el("thead", {}, el("tr", {}, ...["setting", "value", "default", "meaning"].map((title) => el("th", { scope: "col" }, title)))), el("tbody", {}, ...rows)));
    }
    add(body, el("h2", {}, "All options"), el("p", { class: "quiet-text" }, facts.conf === "" ? "The recording shows no option that differs from its default." : "The recording's settings as one option string:"), facts.conf === "" ? "" : el("pre", {}, facts.conf));
    const rows = [...facts.options].sort((a, b) => Number(a.usual) - Number(b.usual)).map((item) => el("tr", { class: item.usual ? "" : "differs" }, el("td", {}, el("code", {}, item.key)), el("td", {}, item.value, " ", mark(item.usual)), el("td", { class: "quiet-text" }, item.default), el("td", {}, item.meaning)));
    add(body, el("table", { class: "plain-table wide" }, el("thead", {}, el("tr", {}, ...["option", "value", "default", "meaning"].map((title) => el("th", { scope: "col" }, title)))), el("tbody", {}, ...rows)));
    add(body, el("div", { class: "settings-facts" }, about(facts), device(facts)));
}

function list(title: string, rows: [string, string | undefined][]): HTMLElement {
    const names = rows.filter(([, value]) => value !== undefined && value !== "");
    return el("section", {}, el("h2", {}, title), el("dl", { class: "facts-list" }, ...names.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value!)])));
}

function about({ recording }: Facts): HTMLElement {
    const endings: Record<string, string> = { open: "the program was killed, or is still writing", cut: "cut in the middle" };
    return list("The recording", [
        ["file", recording.name],
        ["size", recording.bytes ? `${bytes(recording.bytes)} (${count(recording.bytes)} bytes)` : undefined],
        ["format", recording.form === "dict" ? `snapshot, generation ${recording.generation}` : "a list of segments only"],
        ["written by", recording.era],
        ["ends", endings[recording.ending]],
        ["top-level keys", recording.keys.join(", ")],
        ["call stacks", `${count(recording.stacks)} distinct, of ${counted(recording.frames, "frame")}`],
        ["annotations", count(recording.annotations)],
        ["modules", recording.modules ? count(recording.modules) : undefined],
    ]);
}

function device({ device: facts }: Facts): HTMLElement {
    if (!facts) return el("section", {});
    const when = (us: number | undefined) => (us === undefined ? undefined : new Date(us / 1000).toISOString().replace("T", " ").replace("Z", " UTC"));
    return list(facts.host ? "Pinned host memory" : `Device ${facts.device}`, [
        ["events", count(facts.events)],
        ["with a call stack", `${count(facts.events_with_frames)}, up to ${counted(facts.max_frames, "frame")}`],
        ["streams", count(facts.streams)],
        ["first event", facts.has_times ? when(facts.first_time_us) : "times were not recorded"],
        ["duration", facts.has_times ? duration(facts.last_time_us! - facts.first_time_us!) : undefined],
        ["order of times", facts.has_times && !facts.times_monotonic ? "not monotonic" : undefined],
        ...facts.actions.map(({ name, count: times, bytes: size }): [string, string] => [name, `${count(times)}${size ? `, ${bytes(size)} in all` : ""}`]),
    ]);
}

// The field for the place where source lines open: the reader's editor, or a page of the sources.
function sources(): HTMLElement {
    const input = el("input", { type: "text", "aria-label": "Open sources with", placeholder: "vscode://file{file}:{line}", spellcheck: "false" });
    const said = el("span", { class: "quiet-text", role: "status" });
    input.value = sourceTemplate();
    input.addEventListener("change", () => {
        const kept = setSourceTemplate(input.value.trim());
        input.toggleAttribute("aria-invalid", !kept);
        said.textContent = kept ? (input.value.trim() === "" ? "Source lines in call stacks are plain text." : "Source lines in call stacks are links now.") : "A URL of an editor or web page, with {file} and {line} in it.";
    });
    return el("section", {}, el("h2", {}, "Sources"), el("p", {}, el("label", {}, "Open with ", input), " ", said));
}

// The field for frames of the program's own wrappers, which are not call sites in any view.
function skipping(app: App): HTMLElement {
    const input = el("input", { type: "text", "aria-label": "Frames that are never call sites", placeholder: "utils\\.py:.*:alloc", spellcheck: "false" });
    const said = el("span", { class: "quiet-text", role: "status" });
    input.value = app.store.state.skip;
    const use = async () => {
        const skip = input.value.trim();
        input.removeAttribute("aria-invalid");
        said.textContent = "";
        try {
            await app.engine.ask({ name: "list", skip });
            app.store.set({ skip });
        } catch (error) {
            input.setAttribute("aria-invalid", "true");
            said.textContent = (error as Error).message;
        }
    };
    input.addEventListener("change", () => void use());
    return el("section", {}, el("h2", {}, "Call sites"), el("p", {}, el("label", {}, "Frames that are never call sites (file:line:function, a regular expression) ", input), " ", said));
}

export function settingsView(app: App): View {
    const body = el("div", { class: "scroll-body settings-view" });
    const root = el("div", { class: "fill scroll" }, body);
    let shown: Facts | null = null;
    let asked = 0;
    let of = "";

    async function load(): Promise<void> {
        const recording = app.recording();
        if (!recording) return;
        const { rec } = app.store.state;
        const device = app.device()?.device;
        if (of === `${rec} ${device}`) return;
        of = `${rec} ${device}`;
        const ticket = ++asked;
        try {
            const answer = await app.engine.ask<Facts>({ name: "settings", rec, device });
            if (ticket !== asked) return;
            shown = answer.json;
            paint(body, shown);
            body.append(skipping(app), sources());
        } catch (error) {
            of = "";
            app.say((error as Error).message);
        }
    }

    return {
        id: "settings",
        title: "Settings",
        key: "9",
        root,
        show: () => void load(),
        update: (_state: State, changed: ReadonlySet<keyof State>) => {
            if (changed.has("rec") || changed.has("device")) void load();
        },
        csv: () => csvText(["option", "value", "default", "meaning"], (shown?.options ?? []).map((item) => [item.key, item.value, item.default, item.meaning])),
    };
}
