// The page: its parts put together, files opened, the chosen view on its stage.
import type { App, Device, Matches, Recording, View } from "./app";
import { Details } from "./details";
import { add, clear, el } from "./dom";
import { emptyState, explainEmpty } from "./empty";
import { bytesOfBase64, WorkerEngine, type Engine } from "./engine";
import { bytes } from "./format";
import type { Changed, Frame, Opened, Panel } from "./frame";
import { Header } from "./header";
import { Help } from "./help";
import { installKeys } from "./keys";
import { Minimap } from "./minimap";
import { Notes } from "./notes";
import { SearchBox } from "./search";
import { ServerEngine } from "./server";
import { clamped } from "./span";
import { Store, type Axis } from "./state";
import { applyTheme, followSystem } from "./theme";
import { views as makers } from "./views/index";

class Page implements Frame, App {
    readonly store = new Store();
    readonly views: readonly View[];
    readonly canOpen: boolean;
    recordings: Recording[] = [];
    partial = false;
    private found: Matches | undefined;
    private readonly message = el("p", { class: "message", role: "alert", hidden: true });
    private readonly loading = el("div", { class: "loading", role: "status", hidden: true });
    private readonly stage = el("main", { id: "stage", tabindex: -1, role: "tabpanel" });
    private readonly picker = el("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to open" });
    private panels: Panel[] = [];
    private empty: HTMLElement | null = null;

    constructor(readonly engine: Engine) {
        this.canOpen = !(engine instanceof ServerEngine);
        applyTheme(this.store);
        this.views = makers.map((make) => make(this));
    }

    recording(): Recording | undefined {
        return this.recordings[this.store.state.rec];
    }

    device(): Device | undefined {
        const devices = this.recording()?.devices ?? [];
        const chosen = devices.find((device) => device.device === this.store.state.device);
        return chosen ?? devices.reduce<Device | undefined>((best, device) => (!best || device.events > best.events ? device : best), undefined);
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
        return this.views.find((view) => view.id === this.store.state.view) ?? this.views[0];
    }

    say(message: string): void {
        this.message.textContent = message;
        this.message.hidden = message === "";
    }

    chooseFiles(): void {
        if (this.canOpen) this.picker.click();
    }

    build(root: HTMLElement): void {
        const search = new SearchBox(this);
        const notes = new Notes(this);
        const help = new Help(this);
        const details = new Details(this);
        const minimap = new Minimap(this);
        const header = new Header(this, search, notes, () => help.toggle(), (axis) => void this.setAxis(axis));
        this.panels = [header, search, notes, minimap, details];
        this.picker.addEventListener("change", () => void this.openAll([...(this.picker.files ?? [])].map((file) => ({ name: file.name, file }))));
        add(root, header.root, header.tabs, notes.root, this.message, this.loading, minimap.root, el("div", { class: "body" }, this.stage, details.root), help.root, this.picker);
        this.acceptDrops(root);
        installKeys(this, {
            search: () => search.focus(),
            help: () => help.toggle(),
            details: () => details.toggle(),
            save: () => header.save.toggle(),
            theme: () => header.switchTheme(),
            axis: () => void this.setAxis(this.store.state.axis === "time" ? "event" : "time"),
            notion: () => header.switchNotion(),
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

    // The same part of the history on the other axis.
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

    async openAll(files: readonly Opened[]): Promise<void> {
        const failures: string[] = [];
        const before = this.recordings.length;
        this.say("");
        for (const [index, { name, file }] of files.entries()) {
            const bar = el("progress", { "aria-label": `Loading ${name}` });
            const text = el("span", {});
            clear(this.loading);
            add(this.loading, el("strong", {}, files.length > 1 ? `${name} (${index + 1} of ${files.length})` : name), bar, text);
            this.loading.hidden = false;
            const early = before === 0 && index === 0 && this.isFresh() ? () => this.showBeginning(text) : undefined;
            try {
                await this.engine.open(name, file, (done, total) => {
                    bar.max = total;
                    bar.value = done;
                    text.textContent = done < total ? `${bytes(done)} of ${bytes(total)}` : "working out lifetimes";
                }, early);
            } catch (error) {
                failures.push(`${name}: ${(error as Error).message}`);
            }
        }
        await this.list();
        this.loading.hidden = true;
        this.say(failures.join("\n"));
        // What was just opened is what one wants to see, unless a link said otherwise.
        if (before !== 0 && this.recordings.length > before) this.store.set({ rec: before, device: -1, from: 0, to: 0, event: NaN, pick: "" });
    }

    // No link says what to show: the beginning of a file is as good as any other part.
    private isFresh(): boolean {
        const { from, to, event, pick, rec } = this.store.state;
        return from === 0 && to === 0 && Number.isNaN(event) && pick === "" && rec === 0;
    }

    private async showBeginning(text: HTMLElement): Promise<void> {
        text.textContent = "this is its beginning; reading the rest";
        this.partial = true;
        await this.list();
        this.partial = false;
        if (this.engine instanceof WorkerEngine) await this.engine.quiet();
    }

    // Asks again what is open.
    async list(): Promise<void> {
        this.recordings = (await this.engine.ask<{ recordings: Recording[] }>({ name: "list" })).json.recordings;
        this.refresh(null);
    }

    private refresh(changed: Changed): void {
        const { state } = this.store;
        const chosen = this.view();
        applyTheme(this.store);
        for (const panel of this.panels) panel.update(state, changed);
        const root = this.device() ? chosen.root : (this.empty ??= emptyState(this));
        this.stage.setAttribute("aria-labelledby", `tab-${chosen.id}`);
        const fresh = this.stage.firstElementChild !== root;
        if (fresh) this.stage.replaceChildren(root);
        if (!this.device()) return explainEmpty(root, this.recording()?.name);
        if (fresh || changed === null) chosen.show(state);
        else chosen.update(state, changed);
    }
}

// Recordings that `vram view` has put into the page.
function embedded(): Opened[] {
    const elements = document.querySelectorAll<HTMLScriptElement>('script[type="application/x-vram"]');
    return [...elements].map((element) => ({ name: element.dataset.name ?? "recording", file: new Blob([bytesOfBase64(element.textContent!.trim())]) }));
}

async function main(): Promise<void> {
    const server = ServerEngine.ofPage();
    const page = new Page(server ?? (await WorkerEngine.create()));
    page.build(document.getElementById("app")!);
    window.addEventListener("unhandledrejection", (event) => page.say((event.reason as Error)?.message ?? String(event.reason)));
    const files = embedded();
    if (server) await page.list().catch((error: Error) => page.say(error.message));
    else if (files.length !== 0) await page.openAll(files);
}

main().catch((error: Error) => add(document.body, el("p", { class: "message", role: "alert" }, error.message)));
