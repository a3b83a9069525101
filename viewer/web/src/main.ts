// The page: creates its parts, opens files, and shows the chosen view.
import type { App, Device, Matches, Recording, View } from "./app";
import { TroubleBanner } from "./banner";
import { Details } from "./details";
import { add, clear, el } from "./dom";
import { emptyState, explainEmpty, openingState } from "./empty";
import { skipFrames, WorkerEngine, type Engine } from "./engine";
import { bytes, count, counted } from "./format";
import type { Changed, Frame, Opened, Panel } from "./frame";
import { Header } from "./header";
import { Help } from "./help";
import { installKeys } from "./keys";
import { Minimap } from "./minimap";
import { Notes } from "./notes";
import { embeddedIn, embeddedNames, embeddedSkip, unpacked } from "./pages";
import { SavingChip } from "./saving";
import { SearchBox } from "./search";
import { PinBar } from "./pins";
import { ServerEngine } from "./server";
import { clamped } from "./span";
import { Store, UNCHOSEN, type Axis } from "./state";
import { applyTheme, followSystem } from "./theme";
import { countOoms, worstDevice, worstRecording } from "./trouble";
import { views as makers } from "./views/index";
import { visible } from "./visible";

class Page implements Frame, App {
    readonly store = new Store();
    views: readonly View[];
    readonly canOpen: boolean;
    recordings: Recording[] = [];
    readonly opened: Opened[] = [];
    partial = false;
    private found: Matches | undefined;
    private readonly message = el("p", { class: "message", role: "alert", hidden: true });
    private readonly loading = el("div", { class: "loading", role: "status", hidden: true });
    private readonly stage = el("main", { id: "stage", tabindex: -1, role: "tabpanel" });
    private readonly picker = el("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to open" });
    private panels: Panel[] = [];
    private minimap: Panel | undefined;
    private empty: HTMLElement | null = null;
    private counted: readonly Recording[] = []; // recordings whose failed requests have been counted
    private opening = ""; // names of files being read
    private shown: View | null = null;
    private failure = "";
    private wrongLink = ""; // the part of the link that does not exist
    private mended = ""; // recording and device shown instead of those that a link named
    private readonly announcer = el("p", { class: "unseen", role: "status", "aria-live": "polite" });

    constructor(readonly engine: Engine) {
        this.canOpen = !(engine instanceof ServerEngine);
        applyTheme(this.store);
        skipFrames(this.store.state.skip);
        this.views = makers.map((make) => make(this));
    }

    recording(): Recording | undefined {
        return this.recordings[this.store.state.rec];
    }

    device(): Device | undefined {
        const devices = this.recording()?.devices ?? [];
        return devices.find((device) => device.device === this.store.state.device) ?? worstDevice(devices);
    }

    length(): number {
        const device = this.device();
        if (!device) return 1;
        return this.store.state.axis === "time" && device.has_times ? (device.duration_us ?? 0) + 1 : Math.max(1, device.events);
    }

    window(): { from: number; to: number } {
        const { from, to } = this.store.state;
        return to > from ? { from, to } : { from: 0, to: this.length() };
    }

    setWindow(from: number, to: number): void {
        const span = clamped({ from, to }, this.length());
        this.store.set(span.from <= 0 && span.to >= this.length() ? { from: 0, to: 0 } : span);
    }

    matches(): Matches | undefined {
        return this.found;
    }

    setMatches(matches: Matches | undefined): void {
        this.found = matches;
    }

    view(): View {
        const named = (id: string) => this.views.find((view) => view.id === id && (view.available?.() ?? true));
        return named(this.store.state.view) ?? named("timeline")!;
    }

    say(message: string): void {
        this.failure = message;
        const text = [this.wrongLink, message].filter((part) => part !== "").join("\n");
        if (this.message.textContent !== text) this.message.textContent = text; // do not repeat the announcement
        this.message.hidden = text === "";
    }

    announce(text: string): void {
        this.announcer.textContent = text;
    }

    chooseFiles(): void {
        if (this.canOpen) this.picker.click();
    }

    build(root: HTMLElement): void {
        const search = new SearchBox(this);
        const notes = new Notes(this);
        const saving = new SavingChip(this);
        const help = new Help(this);
        const details = new Details(this);
        const minimap = (this.minimap = new Minimap(this));
        const trouble = new TroubleBanner(this);
        const pins = new PinBar(this);
        const header = new Header(this, search, notes, saving, () => help.toggle(), (axis) => void this.setAxis(axis), () => pins.begin());
        this.panels = [header, search, notes, saving, trouble, minimap, pins, details];
        this.picker.addEventListener("change", () => void this.openAll([...(this.picker.files ?? [])].map((file) => ({ name: file.name, file }))));
        add(root, header.root, header.tabs, notes.root, this.message, trouble.root, this.loading, minimap.root, pins.root, el("div", { class: "body" }, this.stage, details.bar, details.root), help.root, this.picker, this.announcer);
        this.acceptDrops(root);
        installKeys(this, {
            search: () => search.focus(),
            help: () => help.toggle(),
            details: () => details.toggle(),
            save: () => header.save.toggle(),
            theme: () => header.switchTheme(),
            axis: () => void this.setAxis(this.store.state.axis === "time" ? "event" : "time"),
            notion: () => header.switchNotion(),
            pin: () => pins.begin(),
            step: (what, by) => header.step(what, by),
        });
        let resizing = 0;
        window.addEventListener("resize", () => {
            cancelAnimationFrame(resizing);
            resizing = requestAnimationFrame(() => this.device() && this.view().show(this.store.state));
        });
        followSystem(() => this.refresh(new Set(["dark"])));
        this.store.listen((_, changed) => this.refresh(changed));
        this.refresh(null);
    }

    // Switches the axis, keeping the same part of the history.
    private async setAxis(axis: Axis): Promise<void> {
        const device = this.device();
        const { rec, axis: before, from, to } = this.store.state;
        if (!device?.has_times || axis === before) return;
        if (!(to > from)) return this.store.set({ axis });
        const { json } = await this.engine.ask<{ from: number; to: number }>({ name: "translate", rec, device: device.device, axis: before, from, to });
        this.store.set({ axis, from: json.from, to: json.to });
    }

    private acceptDrops(root: HTMLElement): void {
        window.addEventListener("dragover", (event) => {
            event.preventDefault();
            root.classList.add("dropping");
        });
        window.addEventListener("dragleave", (event) => {
            if (event.relatedTarget === null) root.classList.remove("dropping");
        });
        window.addEventListener("drop", (event) => {
            event.preventDefault();
            root.classList.remove("dropping");
            void this.openAll([...(event.dataTransfer?.files ?? [])].map((file) => ({ name: file.name, file })));
        });
    }

    async openAll(given: readonly Opened[]): Promise<void> {
        this.tellOpening(given.map(({ name }) => visible(name)).join(", "));
        const files = await unpacked(given);
        const failures: string[] = [];
        const before = this.recordings.length;
        this.say("");
        for (const [index, { name, file }] of files.entries()) {
            const title = visible(name);
            const bar = el("progress", { "aria-label": `Loading ${title}` });
            const text = el("span", {});
            clear(this.loading);
            add(this.loading, el("strong", {}, files.length > 1 ? `${title} (${index + 1} of ${files.length})` : title), bar, text);
            this.loading.hidden = false;
            const early = before === 0 && index === 0 && this.isFresh() ? () => this.showBeginning(text) : undefined;
            try {
                await this.engine.open(name, file, (done, total) => {
                    bar.max = total;
                    bar.value = done;
                    text.textContent = done < total ? `${bytes(done)} of ${bytes(total)}` : "working out lifetimes";
                }, early);
                this.opened.push({ name, file });
            } catch (error) {
                failures.push(`${title}: ${(error as Error).message}`);
            }
        }
        await this.list();
        this.loading.hidden = true;
        this.tellOpening("");
        this.say(failures.join("\n"));
        // Show what was just opened, unless a link names something else.
        if (before !== 0 && this.recordings.length > before) this.store.set({ rec: worstRecording(this.recordings, before)?.rec ?? before, device: -1, ...UNCHOSEN });
    }

    // Shows what is being read if nothing else is shown; "" when done.
    tellOpening(names: string): void {
        if (this.opening === names) return;
        this.opening = names;
        if (!this.device()) this.refresh(new Set());
    }

    // Returns whether the link chooses nothing to show, so that the beginning of a file can be shown.
    private isFresh(): boolean {
        const { from, to, event, pick, rec } = this.store.state;
        return from === 0 && to === 0 && Number.isNaN(event) && pick === "" && rec === -1;
    }

    private async showBeginning(text: HTMLElement): Promise<void> {
        text.textContent = "this is its beginning; reading the rest";
        this.partial = true;
        await this.list();
        this.partial = false;
        if (this.engine instanceof WorkerEngine) await this.engine.quiet();
    }

    // Queries what is open.
    async list(): Promise<void> {
        const { recordings } = (await this.engine.ask<{ recordings: Recording[] }>({ name: "list" })).json;
        // Count failed requests only for whole files.
        if (this.partial) for (const { devices } of recordings) for (const device of devices) device.ooms = 0;
        else {
            await countOoms(this.engine, recordings, this.counted);
            this.counted = recordings;
        }
        this.recordings = recordings;
        if (recordings.length > 0) this.store.open(worstRecording(recordings)?.rec ?? 0);
        this.refresh(null);
    }

    // Shows what is wrong with a link until another recording or device is chosen. The page's own correction does not count as such a
    // choice; a choice made before the correction is announced does.
    private checkLink(): void {
        const wrong = this.outOfRange();
        const { rec, device } = this.store.state;
        const chosen = `${rec} ${device}`;
        const mending = wrong === "" && this.mended === chosen;
        this.mended = wrong === "" ? "" : chosen;
        if (mending) return;
        this.wrongLink = wrong;
        this.say(this.failure);
    }

    // Handles a link to a recording or device that does not exist: shows an existing one, and returns a message.
    private outOfRange(): string {
        const { rec, device } = this.store.state;
        const open = this.recordings.length;
        if (open === 0) return "";
        if (!Number.isInteger(rec) || rec < 0 || rec >= open) {
            const first = worstRecording(this.recordings)?.rec ?? 0;
            this.store.set({ rec: first, device: -1, ...UNCHOSEN });
            const which = Number.isInteger(rec) && rec >= 0 ? `recording ${count(rec + 1)}` : "a recording with an invalid number";
            return `The link refers to ${which}, but only ${counted(open, "recording")} ${open === 1 ? "is" : "are"} open; showing ${this.recordings[first].name}.`;
        }
        const devices = this.recordings[rec].devices;
        if (device === -1 || devices.length === 0 || devices.some((one) => one.device === device)) return "";
        this.store.set({ device: -1, ...UNCHOSEN });
        return `The link refers to device ${device}, which ${this.recordings[rec].name} does not contain; showing another device.`;
    }

    private refresh(changed: Changed): void {
        // The views' results depend on the call sites.
        if (changed?.has("skip")) {
            skipFrames(this.store.state.skip);
            this.shown?.hide?.();
            this.views = makers.map((make) => make(this));
            changed = null;
        }
        // Only the strip of the frame depends on the window, so a turn of the wheel updates nothing else.
        if (changed !== null && this.device() && this.view() === this.shown && [...changed].every((key) => key === "from" || key === "to")) {
            this.minimap?.update(this.store.state, changed);
            return this.shown.update(this.store.state, changed);
        }
        if (changed === null || changed.has("rec") || changed.has("device")) this.checkLink();
        const { state } = this.store; // checkLink() may have corrected it
        const chosen = this.view();
        applyTheme(this.store);
        for (const panel of this.panels) panel.update(state, changed);
        const root = this.device() ? chosen.root : this.opening !== "" ? openingState(this.opening) : (this.empty ??= emptyState(this));
        this.stage.setAttribute("aria-labelledby", `tab-${chosen.id}`);
        const fresh = this.stage.firstElementChild !== root;
        if (fresh) {
            this.shown?.hide?.();
            this.shown = chosen;
            this.stage.replaceChildren(root);
        }
        if (!this.device()) return root === this.empty ? explainEmpty(root, this.recording()?.name) : undefined;
        if (fresh || changed === null) chosen.show(state);
        else chosen.update(state, changed);
    }
}

async function main(): Promise<void> {
    const server = ServerEngine.ofPage();
    const page = new Page(server ?? WorkerEngine.create());
    page.build(document.getElementById("app")!);
    window.addEventListener("unhandledrejection", (event) => page.say((event.reason as Error)?.message ?? String(event.reason)));
    const names = server ? "what the server has" : embeddedNames(document);
    if (names === "") return;
    page.tellOpening(names);
    const skip = embeddedSkip(document);
    if (skip !== "" && page.store.state.skip === "") page.store.set({ skip });
    if (server) await page.list().catch((error: Error) => page.say(error.message));
    else await page.openAll(await embeddedIn(document));
    page.tellOpening("");
}

main().catch((error: Error) => add(document.body, el("p", { class: "message", role: "alert" }, error.message)));
