// The page's frame: files come in, a device, a window and a view are chosen.
import { add, clear, el } from "./dom";
import type { App, Device, Matches, Recording, View } from "./app";
import { bytesOfBase64, WorkerEngine, type Engine } from "./engine";
import { bytes, count, duration } from "./format";
import { Store, type State } from "./state";
import { views as makers } from "./views/index";

class Page implements App {
    readonly store = new Store();
    recordings: Recording[] = [];
    private readonly views: View[];
    private readonly tabs = el("nav", { role: "tablist", "aria-label": "Views" });
    private readonly files = el("select", { "aria-label": "Recording" });
    private readonly devices = el("select", { "aria-label": "Device" });
    private readonly facts = el("span", { class: "facts" });
    private readonly message = el("p", { class: "message", role: "alert" });
    private readonly progress = el("progress", { "aria-label": "Loading", hidden: true });
    private readonly stage = el("main", { tabindex: -1 });
    private readonly picker = el("input", { type: "file", multiple: true, hidden: true });

    constructor(readonly engine: Engine) {
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

    matches(): Matches | undefined {
        return undefined;
    }

    say(message: string): void {
        this.message.textContent = message;
        this.message.hidden = message === "";
    }

    build(root: HTMLElement): void {
        const open = el("button", { type: "button", onclick: () => this.picker.click() }, "Open\u2026");
        this.picker.addEventListener("change", () => void this.openAll([...(this.picker.files ?? [])]));
        this.files.addEventListener("change", () => this.store.set({ rec: this.files.selectedIndex, device: -1, from: 0, to: 0, event: NaN, pick: "" }));
        this.devices.addEventListener("change", () => this.store.set({ device: Number(this.devices.value), from: 0, to: 0, event: NaN, pick: "" }));
        for (const view of this.views) {
            this.tabs.append(el("button", { type: "button", role: "tab", id: `tab-${view.id}`, onclick: () => this.store.set({ view: view.id }) }, view.title));
        }
        add(root, el("header", {}, el("h1", {}, "vram"), open, this.picker, this.files, this.devices, this.facts, this.progress), this.tabs, this.message, this.stage);
        this.say("");
        this.acceptDrops();
        window.addEventListener("resize", () => this.show(true));
        window.addEventListener("keydown", (event) => this.onKey(event));
        this.store.listen((state, changed) => this.onState(state, changed));
        this.show(true);
    }

    private acceptDrops(): void {
        window.addEventListener("dragover", (event) => event.preventDefault());
        window.addEventListener("drop", (event) => {
            event.preventDefault();
            void this.openAll([...(event.dataTransfer?.files ?? [])]);
        });
    }

    async openAll(files: { name: string; file: Blob }[] | File[]): Promise<void> {
        for (const item of files) {
            const [name, file] = item instanceof File ? [item.name, item] : [item.name, item.file];
            this.progress.hidden = false;
            try {
                await this.engine.open(name, file, (done, total) => {
                    this.progress.max = total;
                    this.progress.value = done;
                });
                this.say("");
            } catch (error) {
                this.say(`${name}: ${(error as Error).message}`);
            }
            this.progress.hidden = true;
        }
        await this.list();
    }

    // Asks again what is open.
    async list(): Promise<void> {
        this.recordings = (await this.engine.ask<{ recordings: Recording[] }>({ name: "list" })).json.recordings;
        this.show(true);
    }

    private onState(state: State, changed: ReadonlySet<keyof State>): void {
        const chosen = this.current();
        if (changed.has("view") || !chosen.root.isConnected) this.show(true);
        else {
            this.describe();
            chosen.update(state, changed);
        }
    }

    private current(): View {
        return this.views.find((view) => view.id === this.store.state.view) ?? this.views[0];
    }

    private show(fully: boolean): void {
        const chosen = this.current();
        this.describe();
        if (fully && this.stage.firstElementChild !== chosen.root) {
            clear(this.stage);
            this.stage.append(chosen.root);
        }
        for (const view of this.views) document.getElementById(`tab-${view.id}`)?.setAttribute("aria-selected", String(view === chosen));
        chosen.show(this.store.state);
    }

    private describe(): void {
        const device = this.device();
        clear(this.files);
        this.recordings.forEach((recording, i) => this.files.append(el("option", { value: i, selected: i === this.store.state.rec }, recording.name)));
        clear(this.devices);
        for (const item of this.recording()?.devices ?? [])
            this.devices.append(el("option", { value: item.device, selected: item === device }, item.host ? "pinned host" : `device ${item.device}`));
        this.facts.textContent = device
            ? `${count(device.events)} events \u00b7 peak ${bytes(device.peak_bytes)}${device.has_times ? ` \u00b7 ${duration(device.duration_us ?? 0)}` : ""}`
            : "Drop a PyTorch memory snapshot or a .vram recording anywhere on this page.";
    }

    private onKey(event: KeyboardEvent): void {
        const target = event.target as HTMLElement;
        if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, select, textarea")) return;
        const view = this.views.find((item) => item.key === event.key);
        if (view) this.store.set({ view: view.id });
    }
}

// Recordings that `vram view` has put into the page.
async function embedded(): Promise<{ name: string; file: Blob }[]> {
    const elements = document.querySelectorAll<HTMLScriptElement>('script[type="application/x-vram"]');
    return [...elements].map((element) => ({ name: element.dataset.name ?? "recording", file: new Blob([bytesOfBase64(element.textContent!.trim())]) }));
}

async function main(): Promise<void> {
    const page = new Page(await WorkerEngine.create());
    page.build(document.getElementById("app")!);
    const files = await embedded();
    if (files.length !== 0) await page.openAll(files);
}

void main();
