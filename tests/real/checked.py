"""Reads what `vram check --json` found in a row (check_real.py --check), and prints the findings and a table of all rows.

A finding that was judged is a rule of findings_judged.txt, with its reason; the command leaves it out. Any other finding makes its row fail."""
import collections
import json
import pathlib
import re

JUDGED = pathlib.Path(__file__).resolve().parent / "findings_judged.txt"
COMMAND = ["check", "--json", "--suppress", str(JUDGED)]
FOUND = 1  # the command's exit code if the program ends well and there are findings
FRAMES_SHOWN, NAMES_SHOWN = 3, 12
ROLES = ("earlier", "earlier_launch", "later", "later_launch", "allocated", "freed")
answers = {}  # of the rows that ran, by row


def print_finding(finding):
    """Prints a finding with the innermost frames of Python, or of all if there are none. The row's .json has the whole stacks."""
    print(f"       {finding['kind']}: {finding['message']}\n         remedy: {finding['remedy']}")
    for role in ROLES:
        frames = finding[role]["stack"] if finding[role] else []
        frames = [frame for frame in frames if frame["file"].endswith(".py")] or frames
        places = [f"{'/'.join(frame['file'].split('/')[-2:])}:{frame['line']}" for frame in frames[:FRAMES_SHOWN]]
        print(f"         {role:14} {' < '.join(places)}" if places else "", end="\n" if places else "")


def judge(row, path):
    """Reads the command's answer and prints its findings. Returns why the row fails, or "". There is no answer if the program was ended."""
    text = path.read_text(errors="replace")
    if not text.startswith("{"):
        return ""
    answer = answers[row] = json.loads(text)
    for finding in answer["findings"]:
        print_finding(finding)
    if not answer["complete"]:
        return "the host's memory did not suffice for the whole run"
    return f"{len(answer['findings'])} findings" if answer["findings"] else ""


def short(name):
    """Returns a kernel's name without template arguments and parameters."""
    return re.sub(r"\(anonymous namespace\)::|^void |<.*|\((?!anonymous).*", "", name)


def print_table():
    """Prints a table of the rows with an answer, and the names of the work that was not checked in most of them."""
    print(f"\n{'row':48} {'findings':>8} {'judged':>8} {'unseen':>8}")
    unseen = collections.Counter()
    for id, answer in answers.items():
        print(f"{id:48} {len(answer['findings']):8} {answer['suppressed']:8} {len(answer['unseen']):8}")
        unseen.update({short(name) for name in answer["unseen"]})
    total = [sum(len(answer["findings"]) for answer in answers.values()), sum(answer["suppressed"] for answer in answers.values())]
    print(f"{len(answers)} rows under vram check: {total[0]} findings, {total[1]} judged before")
    for name, rows in unseen.most_common(NAMES_SHOWN):
        print(f"not checked in {rows:3} rows: {name}")
