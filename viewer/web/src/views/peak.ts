// Peak: the holders of the live memory at the peak, at the chosen moment or at the end, or the allocations of the window, as a table and as
// call stacks.
import type { App, View } from "../app";
import { clear, el } from "../dom";
import { css, colourOf, inkOn } from "../draw/colour";
import { Flame, type TreeJson } from "../draw/flame";
import { seedGroups } from "../draw/seeds";
import { bytes, count, counted, percent } from "../format";
import { latest } from "../latest";
import { GROUPINGS, searchable, searchText, siteOf, tailOf, type Site } from "../sites";
import { frameText, type StackFrame } from "../stack";
import { splitter } from "../splitter";
import type { State } from "../state";
import { barCell, SortTable } from "../table";

export type Group = { name: string; key: number; bytes: number; count: number; largest_bytes: number; row: number; stack: number; role?: string; found_bytes?: number };
type GroupsJson = { event: number; peak_event: number; bytes: number; allocations: number; heading: string; distinct: number; groups: Group[]; rest_bytes: number; rest_count: number };
type Moment = "peak" | "chosen" | "end" | "made";

const TOP = 5000;

// Returns a role's name with its colour.
export function roleCell(role: string | undefined): HTMLElement | string {
    if (!role) return "";
    const dot = el("span", { class: "dot" });
    dot.style.background = css(colourOf(role));
    return el("span", { class: "role-cell" }, dot, role.replaceAll("_", " "));
}

export function nameCell(name: string, colour = true): HTMLElement {
    const { title, place } = siteOf(name);
    const dot = el("span", { class: "dot" });
    dot.style.background = css(colourOf(name));
    return el("span", { class: "site", title: name }, colour && dot, el("span", { class: "site-title" }, title), place !== "" && el("span", { class: "site-place" }, place));
}

// Chooses a group in every view: by searching for its name or, if no search finds it, by its largest allocation.
export async function highlight(app: App, by: string, group: { name: string; row: number }): Promise<void> {
    const { rec, notion } = app.store.state;
    if (searchable(by) && !group.name.startsWith("<")) app.store.set({ search: searchText(by, group.name), regex: false });
    const { json } = await app.engine.ask<{ label: string }>({ name: "allocation", rec, device: app.device()?.device, notion, row: group.row });
    app.store.set({ pick: json.label });
}

// The moment that another view requests when it opens this one.
let wanted: Moment | "" = "";

// Opens this view at the end, which shows the memory that was never freed.
export function showEnd(app: App): void {
    wanted = "end";
    app.store.set({ view: "peak" });
}

// Opens this view after an event.
export function showChosen(app: App, event: number): void {
    wanted = "chosen";
    app.store.set({ view: "peak", event });
}

const NO_FRAMES = "<no frames>"; // the engine's name for stacks without frames

// Returns a function that finds the table group of a call stack's frame, so that both have the same colour.
function groupFinder(by: string, groups: readonly Group[], roles: ReadonlyMap<string, string> | null): (frame: StackFrame | null) => string | null {
    if (roles) return (frame) => roles.get(frame ? frameText(frame) : NO_FRAMES) ?? null;
    const names = new Set(groups.map(({ name }) => name));
    const nameOf = ({ site: frameText, function: ([name]: StackFrame) => name, file: ([, file]: StackFrame) => file } as Record<string, (frame: StackFrame) => string>)[by];
    return (frame) => {
        const name = frame ? nameOf?.(frame) : NO_FRAMES;
        return name !== undefined && names.has(name) ? name : null;
    };
}

const BAR_PARTS = 24;

// A bar of everything held: one part per group, largest first, with all small ones together at the end.
class HeldBar {
    readonly root = el("div", { class: "held-bar", role: "group", "aria-label": "All of it as one bar" });

    constructor(private readonly choose: (group: Group) => void) {}

    show(groups: readonly Group[], whole: number): void {
        const shown = groups.slice(0, BAR_PARTS).filter((group) => group.row >= 0 && group.bytes > 0);
        const titles = shown.map(({ name }) => siteOf(name).title);
        // Adds the place if a title is not unique.
        const placeOf = ({ title, place }: Site) => (place !== "" && titles.filter((other) => other === title).length > 1 ? ` ${place.split("/").at(-1)}` : "");
        const rest = whole - shown.reduce((sum, group) => sum + group.bytes, 0);
        const part = (name: string, size: number, colour: string, ink: string, group?: Group) => {
            const site = siteOf(name);
            const text = `${site.title}${placeOf(site)}: ${bytes(size)}, ${percent(size, whole)}`;
            const item = el("button", { type: "button", title: text, "aria-label": text, disabled: group === undefined, onclick: () => group && this.choose(group) }, `${tailOf(site.title)}${placeOf(site)}`);
            item.style.width = `${(100 * size) / Math.max(1, whole)}%`;
            item.style.background = colour;
            item.style.color = ink;
            item.dataset.bytes = String(size);
            return item;
        };
        const parts = shown.map((group) => part(group.name, group.bytes, css(colourOf(group.name)), inkOn(colourOf(group.name)), group));
        if (rest > 0) parts.push(part("all others", rest, "var(--reserved)", "var(--text)"));
        this.root.replaceChildren(...parts);
        this.root.hidden = whole === 0;
    }
}

class Peak {
    readonly root: HTMLElement;
    private readonly by = el("select", { "aria-label": "Group by" }, ...GROUPINGS.map(([value, text]) => el("option", { value }, text)));
    private readonly expression = el("input", { type: "text", "aria-label": "Regular expression over file:line:function", placeholder: "layers\\.([0-9]+)", hidden: true });
    private readonly moment = el("select", { "aria-label": "Moment" });
    private readonly shape = el("select", { "aria-label": "Shape of the call stacks" }, el("option", { value: "down" }, "icicle, outermost first"), el("option", { value: "flame" }, "flame graph"), el("option", { value: "up" }, "icicle, innermost first"));
    private readonly allFrames = el("input", { type: "checkbox" });
    private readonly facts = el("p", { class: "peak-facts" });
    private readonly held = new HeldBar((group) => this.choose(group));
    private readonly table: SortTable<Group>;
    private readonly flame: Flame;
    private readonly askGroups;
    private readonly askTree;
    private chosen = NaN; // key of the chosen group
    private whole = 0;
    private asked = "";

    constructor(private readonly app: App) {
        this.askGroups = latest<GroupsJson>(app.engine);
        this.askTree = latest<TreeJson>(app.engine);
        this.table = new SortTable<Group>(
            "Groups",
            [
                { title: "Group", value: (group) => group.name, cell: (group) => nameCell(group.name) },
                { title: "Role", value: (group) => group.role ?? "", cell: (group) => roleCell(group.role) },
                { title: "Bytes", number: true, value: (group) => group.bytes, cell: (group) => barCell(group.bytes, this.whole, bytes(group.bytes), css(colourOf(group.name))) },
                { title: "Share", number: true, value: (group) => group.bytes / Math.max(1, this.whole), cell: (group) => percent(group.bytes, this.whole) },
                { title: "Count", number: true, value: (group) => group.count, cell: (group) => count(group.count) },
                { title: "Largest", number: true, value: (group) => group.largest_bytes, cell: (group) => bytes(group.largest_bytes) },
            ],
            2,
            (group) => this.choose(group),
            (group) => group.key === this.chosen,
        );
        this.flame = new Flame((frame) => app.store.set({ search: frameText(frame), regex: false }));
        const bar = el("div", { class: "view-bar" }, el("label", {}, "At", this.moment), el("label", {}, "Group by", this.by), this.expression, el("label", {}, "Stacks as", this.shape), el("label", { title: "Also show frames of unwinding, dispatch, the interpreter, allocators and wrappers" }, this.allFrames, "all frames"), this.facts);
        const parts = el("div", { class: "peak-parts" });
        const between = splitter({
            name: "peak",
            label: "Height of the table",
            upright: false,
            least: 10,
            most: 90,
            start: 55,
            step: 4,
            valueAt: (event) => (100 * (event.clientY - parts.getBoundingClientRect().top)) / Math.max(1, parts.clientHeight),
            use: (share) => (parts.style.gridTemplateRows = `minmax(60px, ${share}fr) auto minmax(60px, ${100 - share}fr)`),
        });
        parts.append(this.table.root, between, this.flame.root);
        this.root = el("div", { class: "fill peak-view" }, bar, this.held.root, parts);
        this.allFrames.addEventListener("change", () => void this.load());
        this.by.value = GROUPINGS.some(([word]) => word === app.store.state.by) ? app.store.state.by : "site";
        this.by.addEventListener("change", () => this.regroup());
        this.expression.addEventListener("change", () => void this.load());
        this.moment.addEventListener("change", () => void this.load());
        this.shape.addEventListener("change", () => void this.load());
        this.fillMoments();
    }

    private regroup(): void {
        this.expression.hidden = this.by.value !== "regex";
        this.chosen = NaN;
        // The other views support only some of these groupings.
        if (!["function", "file", "annotation", "regex"].includes(this.by.value)) this.app.store.set({ by: this.by.value });
        void this.load();
        if (this.by.value === "regex") this.expression.focus();
    }

    private fillMoments(): void {
        const { event } = this.app.store.state;
        const before = this.moment.value || "peak";
        const choices: [Moment, string][] = [["peak", "the peak"], ["chosen", Number.isNaN(event) ? "the selected event (none)" : `event ${count(event)}`], ["end", "the end"], ["made", "allocated in the window"]];
        clear(this.moment);
        for (const [value, text] of choices) this.moment.append(el("option", { value, disabled: value === "chosen" && Number.isNaN(event) }, text));
        this.moment.value = before === "chosen" && Number.isNaN(event) ? "peak" : before;
    }

    private what(): { [key: string]: string | number | undefined } {
        const { rec, notion, event, axis } = this.app.store.state;
        const device = this.app.device()?.device;
        const moment = this.moment.value as Moment;
        if (moment === "made") return { rec, device, notion, made: 1, axis, ...this.app.window() };
        return { rec, device, notion, event: moment === "chosen" ? event : moment };
    }

    async load(): Promise<void> {
        if (!this.app.device()) return;
        if (wanted !== "") this.moment.value = wanted;
        wanted = "";
        const what = this.what();
        const by = this.by.value;
        const { search, regex } = this.app.store.state;
        const find = this.app.matches() ? { find: search.trim(), find_regex: regex ? 1 : 0 } : {};
        const fold = this.allFrames.checked ? 0 : 1;
        const key = JSON.stringify([what, by, this.expression.value, this.shape.value, this.app.recordings.length, find, fold]);
        if (key === this.asked) return;
        this.asked = key;
        if (by === "regex" && this.expression.value === "") {
            this.facts.textContent = "Type a regular expression: stacks are grouped by the text that it (or its first group in parentheses) matches.";
            this.table.show([]);
            return;
        }
        try {
            const [groups, tree] = await Promise.all([
                this.askGroups({ name: "groups", ...what, by, regex: by === "regex" ? this.expression.value : undefined, top: TOP, roles: by === "role" ? 0 : 1, ...find }),
                this.askTree({ name: "tree", ...what, order: this.shape.value === "up" ? "up" : "down", fold }),
            ]);
            this.app.say("");
            if (by !== "regex") await seedGroups(this.app, by);
            const roles = by === "role" ? await this.rolesOfSites(what) : null;
            if (groups) this.show(groups.json);
            if (groups) this.flame.groupOf = groupFinder(by, groups.json.groups, roles);
            this.flame.upwards = this.shape.value === "flame";
            if (tree) this.flame.show(tree);
        } catch (error) {
            this.app.say((error as Error).message);
        }
    }

    // If the table shows roles, a call site has the colour of its role.
    private async rolesOfSites(what: { [key: string]: string | number | undefined }): Promise<ReadonlyMap<string, string>> {
        const { json } = await this.app.engine.ask<GroupsJson>({ name: "groups", ...what, by: "site", top: TOP, roles: 1 });
        return new Map(json.groups.map(({ name, role }) => [name, role ?? ""]));
    }

    private show(json: GroupsJson): void {
        this.whole = json.bytes;
        const when = this.moment.value === "made" ? "allocated in the window" : json.event < 0 ? "before the first event" : `after event ${count(json.event)}`;
        this.facts.replaceChildren(el("strong", { id: "peak-bytes", "data-bytes": json.bytes, title: `${count(json.bytes)} bytes` }, bytes(json.bytes)), ` in ${counted(json.allocations, "allocation")}, ${counted(json.distinct, "group")}, ${when}`);
        const rest = json.rest_count > 0 ? [{ name: "<all others>", key: -1, bytes: json.rest_bytes, count: json.rest_count, largest_bytes: 0, row: -1, stack: -1 }] : [];
        this.table.found = json.groups[0]?.found_bytes === undefined ? null : (group) => (group.found_bytes ?? 0) > 0;
        this.table.show([...json.groups, ...rest]);
        this.held.show(json.groups, json.bytes);
        if (json.allocations === 0) this.facts.textContent = "Nothing is live at this moment.";
    }

    private choose(group: Group): void {
        if (group.row < 0) return;
        this.chosen = group.key;
        this.table.draw();
        void highlight(this.app, this.by.value, group).catch((error: Error) => this.app.say(error.message));
    }

    update(changed: ReadonlySet<keyof State>): void {
        if (changed.has("event")) this.fillMoments();
        const matches = this.app.matches();
        this.flame.matches = matches ? (stack) => matches.has(NaN, stack) : () => false;
        if (changed.has("found") || changed.has("search") || changed.has("dark")) this.flame.draw();
        void this.load();
    }

    shown(): void {
        this.fillMoments();
        this.update(new Set(["found"]));
        this.flame.draw();
    }

    csv = (): string => this.table.csv();
    svg = (): string => this.flame.svg(`${this.app.recording()?.name ?? ""}: ${this.facts.textContent}`);
}

export function peakView(app: App): View {
    const peak = new Peak(app);
    return {
        id: "peak",
        title: "Peak",
        key: "5",
        root: peak.root,
        keys: [
            ["\u2191 \u2193 Enter", "in the table: move between rows, and highlight the group everywhere"],
            ["\u2190 \u2191 \u2192 \u2193", "in the call stacks: move between frames; Enter zooms, Backspace goes back, h highlights everywhere"],
        ],
        show: () => peak.shown(),
        update: (_, changed) => peak.update(changed),
        svg: peak.svg,
        csv: peak.csv,
    };
}
