// Pins: events with the reader's notes, kept in the address. The line below the strip lists them, and every chart marks them.
import type { App } from "./app";
import { add, clear, el } from "./dom";
import { count } from "./format";
import type { Changed, Frame, Panel } from "./frame";
import type { State } from "./state";

export type Pin = { rec: number; device: number; event: number; note: string };

const MOST_PINS = 50;
const MOST_NOTE = 200;

// "REC.DEVICE.EVENT:NOTE;...", each note percent-encoded. Invalid parts of a link are skipped.
export function pinsOf(text: string): Pin[] {
    const pins: Pin[] = [];
    for (const part of text.split(";").slice(0, MOST_PINS)) {
        const match = /^(\d+)\.(-?\d+)\.(-?\d+):([^;]*)$/.exec(part);
        if (!match) continue;
        try {
            pins.push({ rec: Number(match[1]), device: Number(match[2]), event: Number(match[3]), note: decodeURIComponent(match[4]).slice(0, MOST_NOTE) });
        } catch {
            continue;
        }
    }
    return pins;
}

export const pinsText = (pins: readonly Pin[]): string => pins.map(({ rec, device, event, note }) => `${rec}.${device}.${event}:${encodeURIComponent(note)}`).join(";");

// Returns the pins of the current device, in the order of their events.
export function pinsHere(app: App): Pin[] {
    const device = app.device()?.device;
    const { rec, pins } = app.store.state;
    return pins === "" ? [] : pinsOf(pins).filter((pin) => pin.rec === rec && pin.device === device).sort((a, b) => a.event - b.event);
}

export class PinBar implements Panel {
    readonly root = el("div", { class: "pins", role: "group", "aria-label": "Pins", hidden: true });
    private readonly note = el("input", { type: "text", maxlength: MOST_NOTE, placeholder: "a note", "aria-label": "Note of the pin", size: 24 });

    private asking = false;

    constructor(private readonly frame: Frame) {
        this.note.addEventListener("keydown", (event) => {
            if (event.key === "Enter") this.pin();
            if (event.key === "Escape") this.end();
        });
    }

    private end(): void {
        this.asking = false;
        this.note.value = "";
        this.update(this.frame.store.state, null);
    }

    // Pins the chosen event with the note in the field, or changes its pin's note.
    private pin(): void {
        const { store } = this.frame;
        const { rec, event, pins } = store.state;
        const device = this.frame.device()?.device;
        if (device === undefined || Number.isNaN(event)) return;
        const others = pinsOf(pins).filter((pin) => pin.rec !== rec || pin.device !== device || pin.event !== event);
        store.set({ pins: pinsText([...others, { rec, device, event, note: this.note.value.trim() }].slice(-MOST_PINS)) });
        this.end();
        this.frame.announce(`Event ${count(event)} is pinned.`);
    }

    // Called by the key and the button. Shows the field if an event is chosen.
    begin(): void {
        if (Number.isNaN(this.frame.store.state.event)) return this.frame.say("Select a moment first (click in a chart, or \u201cpeak\u201d above); the pin marks that moment.");
        this.asking = true;
        this.update(this.frame.store.state, null);
        this.note.focus();
    }

    private remove(gone: Pin): void {
        const { store } = this.frame;
        store.set({ pins: pinsText(pinsOf(store.state.pins).filter((pin) => pinsText([pin]) !== pinsText([gone]))) });
    }

    update(state: State, changed: Changed): void {
        if (changed !== null && !["event", "pins", "rec", "device"].some((key) => changed.has(key as keyof State))) return;
        const here = this.frame.device() ? pinsHere(this.frame) : [];
        const chosen = this.asking && !Number.isNaN(state.event) && this.frame.device() !== undefined;
        const hidden = here.length === 0 && !chosen;
        const moved = hidden !== this.root.hidden;
        this.root.hidden = hidden;
        const typing = document.activeElement === this.note;
        clear(this.root);
        for (const pin of here) {
            const name = pin.note || `event ${count(pin.event)}`;
            const go = el("button", { type: "button", class: "pin-name", title: `Event ${count(pin.event)}${pin.note ? `: ${pin.note}` : ""}`, "aria-pressed": String(pin.event === state.event), onclick: () => this.frame.store.set({ event: pin.event }) }, name);
            add(this.root, el("span", { class: "pin", "data-event": pin.event }, go, el("button", { type: "button", class: "quiet", "aria-label": `Remove the pin ${name}`, onclick: () => this.remove(pin) }, "\u00d7")));
        }
        if (chosen) {
            const own = here.find((pin) => pin.event === state.event);
            this.note.placeholder = own ? "another note" : "a note";
            add(this.root, el("span", { class: "quiet-text" }, `event ${count(state.event)}:`), this.note, el("button", { type: "button", title: "Pin the selected event (b)", onclick: () => this.pin() }, own ? "Change" : "Pin"));
            add(this.root, el("button", { type: "button", class: "quiet", "aria-label": "Cancel the pin", onclick: () => this.end() }, "\u00d7"));
            if (typing) this.note.focus();
        }
        if (moved) window.dispatchEvent(new Event("resize"));
    }
}
