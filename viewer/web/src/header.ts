// The page's head: the open recordings, the search, the switches, and the tabs below.
import { add, clear, el } from "./dom";
import { bytes, count, counted, duration } from "./format";
import type { Changed, Frame, Panel } from "./frame";
import { Menu } from "./menu";
import type { Notes } from "./notes";
import { saveCommands } from "./save";
import type { SavingChip } from "./saving";
import type { SearchBox } from "./search";
import { UNCHOSEN, type Axis, type Notion, type State } from "./state";
import { isDark } from "./theme";
import { deviceName, oomMark, ooms } from "./trouble";

// A choice between two words.
class Switch<T extends string> {
    readonly root = el("div", { class: "switch", role: "radiogroup" });
    private readonly buttons = new Map<T, HTMLButtonElement>();
    constructor(label: string, choices: readonly (readonly [T, string, string])[], chosen: (value: T) => void) {
        this.root.setAttribute("aria-label", label);
        for (const [value, text, title] of choices) {
            const button = el("button", { type: "button", role: "radio", title, onclick: () => chosen(value) }, text);
            this.buttons.set(value, button);
            this.root.append(button);
        }
        this.root.addEventListener("keydown", (event) => {
            if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
            const other = [...this.buttons].find(([, button]) => button !== document.activeElement);
            if (!other || other[1].disabled) return;
            other[1].focus();
            chosen(other[0]);
            event.preventDefault();
            event.stopPropagation();
        });
    }
    set(value: T, enabled = true): void {
        for (const [name, button] of this.buttons) {
            button.setAttribute("aria-checked", String(name === value));
            button.tabIndex = name === value ? 0 : -1;
            button.disabled = !enabled && name !== value;
        }
    }
}

export class Header implements Panel {
    readonly root = el("header", {});
    readonly tabs = el("nav", { class: "tabs" });
    readonly save: Menu;
    private readonly tabList = el("div", { role: "tablist", "aria-label": "Views" });
    private readonly files = el("select", { class: "files", "aria-label": "Recording" });
    private readonly devices = el("select", { "aria-label": "Device" });
    private readonly badge = el("span", { class: "tab-badge", role: "img", hidden: true });
    private readonly facts = el("span", { class: "facts" });
    private readonly theme = el("button", { type: "button", class: "quiet icon", "aria-label": "Light or dark", title: "Light or dark (l)" });
    private readonly axis: Switch<Axis>;
    private readonly notion: Switch<Notion>;

    constructor(
        private readonly frame: Frame,
        search: SearchBox,
        notes: Notes,
        saving: SavingChip,
        help: () => void,
        axis: (axis: Axis) => void,
        private readonly pin: () => void,
    ) {
        const { store } = frame;
        this.axis = new Switch("Horizontal axis", [["event", "Events", "One step per event (e)"], ["time", "Time", "Real time (e)"]], axis);
        this.notion = new Switch(
            "What counts as live",
            [
                ["allocated", "Allocated", "Until the program frees it (v)"],
                ["active", "Active", "Until it can be used again (v)"],
            ],
            (notion) => store.set({ notion }),
        );
        this.save = new Menu("Save", () => saveCommands(frame), { title: "Save the picture or the table (x)" });
        this.theme.addEventListener("click", () => this.switchTheme());
        this.files.addEventListener("change", () => store.set({ rec: this.files.selectedIndex, device: -1, ...UNCHOSEN }));
        this.devices.addEventListener("change", () => store.set({ device: Number(this.devices.value), ...UNCHOSEN }));
        const open = frame.canOpen && el("button", { type: "button", onclick: () => frame.chooseFiles(), title: "Open files (o)" }, "Open\u2026");
        const helper = el("button", { type: "button", class: "quiet icon", "aria-label": "Help", title: "Keys and words (?)", onclick: help }, "?");
        add(this.root, el("h1", {}, logo(), "vram"), open, this.files, this.devices, search.root, this.axis.root, this.notion.root, this.save.root, this.theme, helper);
        for (const view of frame.views) {
            const tab = el("button", { type: "button", role: "tab", id: `tab-${view.id}`, "aria-controls": "stage", title: `${view.title} (${view.key})`, onclick: () => store.set({ view: view.id }) }, view.tab ?? view.title);
            tab.append(el("kbd", { "aria-hidden": "true" }, view.key));
            if (view.id === "oom") tab.append(this.badge);
            this.tabList.append(tab);
        }
        this.tabList.addEventListener("keydown", (event) => this.walkTabs(event));
        add(this.tabs, this.tabList, this.facts, saving.root, notes.chip);
    }

    switchTheme(): void {
        this.frame.store.set({ dark: !isDark(this.frame.store) });
    }

    switchNotion(): void {
        this.frame.store.set({ notion: this.frame.store.state.notion === "active" ? "allocated" : "active" });
    }

    // Moves by `by` devices or recordings, wrapping around.
    step(what: "device" | "rec", by: number): void {
        const { store } = this.frame;
        if (what === "rec") {
            const all = this.frame.recordings.length;
            if (all > 1) store.set({ rec: (store.state.rec + by + all) % all, device: -1, ...UNCHOSEN });
            return;
        }
        const devices = this.frame.recording()?.devices ?? [];
        const at = devices.indexOf(this.frame.device()!);
        if (devices.length > 1) store.set({ device: devices[(at + by + devices.length) % devices.length].device, ...UNCHOSEN });
    }

    private walkTabs(event: KeyboardEvent): void {
        const views = this.frame.views.filter((view) => view.available?.() ?? true);
        const at = views.indexOf(this.frame.view());
        const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: views.length - 1 }[event.key];
        if (next === undefined) return;
        const view = views[(next + views.length) % views.length];
        this.frame.store.set({ view: view.id });
        document.getElementById(`tab-${view.id}`)?.focus();
        event.preventDefault();
        event.stopPropagation();
    }

    update(state: State, changed: Changed): void {
        // A move of the window changes nothing here.
        if (changed !== null && [...changed].every((key) => key === "from" || key === "to")) return;
        if (changed === null) this.fillFiles(state);
        if (changed === null || changed.has("rec")) this.fillDevices();
        this.files.selectedIndex = state.rec;
        const device = this.frame.device();
        if (device) this.devices.value = String(device.device);
        this.axis.set(state.axis === "time" && device?.has_times ? "time" : "event", device?.has_times ?? false);
        this.notion.set(state.notion);
        this.theme.textContent = isDark(this.frame.store) ? "\u2600" : "\u263e";
        for (const view of this.frame.views) {
            const tab = document.getElementById(`tab-${view.id}`);
            tab?.setAttribute("aria-selected", String(view === this.frame.view()));
            if (tab) tab.tabIndex = view === this.frame.view() ? 0 : -1;
            if (tab) tab.hidden = !(view.available?.() ?? true);
        }
        if (changed === null || changed.has("view")) document.getElementById(`tab-${state.view}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
        clear(this.facts);
        document.title = ["vram", device && `peak ${bytes(device.peak_bytes).replace("\u202f", " ")}`, this.frame.recording()?.name].filter(Boolean).reverse().join(" \u2013 ");
        if (!device) return;
        const peak = state.notion === "active" ? device.active_peak_bytes : device.peak_bytes;
        const moment = state.notion === "active" ? device.active_peak_event : device.peak_event;
        const button = el("button", { type: "button", class: "jump", title: "Select the moment of the peak", "data-event": moment, onclick: () => this.frame.store.set({ event: moment }) }, `peak ${bytes(peak)}`);
        button.dataset.bytes = String(peak);
        add(this.facts, `${counted(device.events, "event")} \u00b7 `, button, device.has_times && ` \u00b7 ${duration(device.duration_us ?? 0)}`);
        if (!Number.isNaN(state.event)) add(this.facts, " \u00b7 ", el("button", { type: "button", class: "jump pin-it", title: "Pin the selected event, with a note (b)", onclick: () => this.pin() }, `\u2691 ${count(state.event)}`));
    }

    private fillFiles(state: State): void {
        clear(this.files);
        this.frame.recordings.forEach((recording, i) => this.files.append(el("option", { value: i, selected: i === state.rec }, `${recording.name}${this.frame.recordings.length > 1 ? oomMark(ooms(recording.devices)) : ""}`)));
        this.files.hidden = this.frame.recordings.length === 0;
    }

    private fillDevices(): void {
        clear(this.devices);
        const devices = this.frame.recording()?.devices ?? [];
        for (const item of devices) this.devices.append(el("option", { value: item.device }, `${deviceName(item)}${oomMark(item.ooms)}`));
        this.devices.hidden = devices.length < 2;
        const all = ooms(devices);
        this.badge.hidden = all === 0;
        this.badge.textContent = count(all);
        this.badge.setAttribute("aria-label", `${counted(all, "request")} failed`);
    }
}

// Draws segments with blocks in them.
function logo(): SVGSVGElement {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    svg.setAttribute("viewBox", "0 0 20 20");
    svg.setAttribute("aria-hidden", "true");
    for (const [x, y, width, part] of [[1, 3, 11, "a"], [13, 3, 6, "r"], [1, 8.5, 5, "a"], [7, 8.5, 4, "p"], [12, 8.5, 7, "a"], [1, 14, 8, "r"], [10, 14, 9, "a"]] as const) {
        const bar = document.createElementNS(space, "rect");
        for (const [name, value] of Object.entries({ x, y, width, height: 4, rx: 1, class: `logo-${part}` })) bar.setAttribute(name, String(value));
        svg.append(bar);
    }
    return svg;
}
