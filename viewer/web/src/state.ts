// The page's state, shared by all views and stored in the URL's fragment. Views read it and change it with set(); listeners are notified
// once per frame.

export type Axis = "event" | "time";
export type Notion = "allocated" | "active";

export type State = {
    view: string;
    rec: number;
    device: number;
    axis: Axis;
    notion: Notion;
    from: number; // the window, in positions of the axis (docs/reference/formats/queries.md)
    to: number; // 0: the whole history
    event: number; // the chosen moment, after this event; -1: before the first; NaN: none
    pick: string; // label of the chosen allocation or segment ("b7f03c0000000_0", "s7f03c0000000_0"), or ""
    search: string;
    regex: boolean;
    by: string; // grouping
    legend: string; // the highlighted group, or ""
    other: number; // the recording to compare with; -1: none
    step: number; // the step (from 1) at which recordings are compared; 0: the peak of each; -1: the end
    base: number; // the step to compare `step` with, if one recording is compared with itself
    skip: string; // a regular expression for the file:line:function of frames that are not call sites
    pins: string; // events with notes (pins.ts)
    dark: boolean | null; // null: the system's choice
    found: number; // counts answers to the search; not part of the URL
};

export const initial: State = {
    view: "timeline",
    rec: -1, // nothing is open
    device: -1,
    axis: "event",
    notion: "allocated",
    from: 0,
    to: 0,
    event: NaN,
    pick: "",
    search: "",
    regex: false,
    by: "site",
    legend: "",
    other: -1,
    step: 0,
    base: 1,
    skip: "",
    pins: "",
    dark: null,
    found: 0,
};
// Reset when another recording or device is chosen.
export const UNCHOSEN: Partial<State> = { from: 0, to: 0, event: NaN, pick: "" };

// Not stored in the URL.
const passing: ReadonlySet<keyof State> = new Set(["found"]);

// Keys that change many times in one gesture, and the longest pause within it.
const GLIDING: ReadonlySet<keyof State> = new Set(["from", "to", "search", "dark", "legend", "event"]);
const GLIDE_MS = 1500;
const REST_MS = 400; // after the last move of the window

type Listener = (state: State, changed: ReadonlySet<keyof State>) => void;

// Decodes a fragment. Missing keys get their default.
function decode(fragment: string, usual: State): State {
    const state: State = { ...usual };
    for (const [key, text] of new URLSearchParams(fragment)) {
        if (!(key in initial) || passing.has(key as keyof State)) continue;
        const sample = initial[key as keyof State];
        const value = typeof sample === "number" ? Number(text) : typeof sample === "boolean" ? text === "true" : key === "dark" ? text === "true" : text;
        Object.assign(state, { [key]: value });
    }
    return state;
}

function encode(state: State, usual: State): string {
    const pairs = (Object.keys(initial) as (keyof State)[]).filter((key) => !Object.is(state[key], usual[key]) && state[key] !== null && !passing.has(key));
    return new URLSearchParams(pairs.map((key) => [key, String(state[key])])).toString();
}

// Values that the browser keeps between pages. A page loaded from a file may have no storage; they then last as long as the page.
const kept = new Map<string, string>();
export function recall(key: string): string | null {
    try {
        return localStorage.getItem(key) ?? kept.get(key) ?? null;
    } catch {
        return kept.get(key) ?? null;
    }
}
export function remember(key: string, value: string): void {
    kept.set(key, value);
    try {
        localStorage.setItem(key, value);
    } catch {
        /* no storage: `kept` has the value */
    }
}

export class Store {
    private listeners = new Set<Listener>();
    private pending = new Set<keyof State>();
    private written = 0; // timer that will write the address
    private last = { state: initial, at: -Infinity }; // the state in the address, and since when
    private followed = true; // the address was set from outside: replace it instead of adding to the browser's history
    private usual = initial;
    state: State = decode(location.hash.slice(1), initial);

    constructor() {
        // Compare with the requested address, not with one that the timer has written since.
        window.addEventListener("hashchange", (event) => {
            const fragment = new URL(event.newURL).hash.slice(1);
            if (fragment === encode(this.state, this.usual)) return;
            this.followed = true;
            this.set({ ...decode(fragment, this.usual), found: this.state.found });
        });
    }

    // Sets the recording that is shown if the address names none. Shows it unless another was chosen.
    open(rec: number): void {
        const before = this.usual.rec;
        this.usual = { ...initial, rec };
        const { from, to, event, pick } = this.state;
        const chosen = to > from || !Number.isNaN(event) || pick !== "";
        if (this.state.rec === -1 || (this.state.rec === before && !chosen)) this.set({ rec });
    }

    listen(listener: Listener): () => void {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    }

    set(change: Partial<State>): void {
        for (const key of Object.keys(change) as (keyof State)[]) {
            if (Object.is(this.state[key], change[key])) continue;
            if (this.pending.size === 0) requestAnimationFrame(() => this.tell());
            this.pending.add(key);
        }
        this.state = { ...this.state, ...change };
    }

    // Writes the address. A choice adds to the browser's history; consecutive moves of the window are one entry.
    private write(): void {
        const { state, last } = this;
        const fragment = `#${encode(state, this.usual)}`;
        const now = performance.now();
        const changed = (Object.keys(initial) as (keyof State)[]).filter((key) => !passing.has(key) && !Object.is(state[key], last.state[key]));
        const gliding = changed.every((key) => GLIDING.has(key)) && now - last.at < GLIDE_MS;
        const replace = this.followed || changed.length === 0 || gliding;
        this.followed = false;
        this.last = { state, at: now };
        if (fragment === (location.hash || "#")) return;
        // A page inside another's frame (srcdoc, in a notebook) has the outer page's base, but its own address.
        const address = location.href.split("#", 1)[0] + fragment;
        if (replace) history.replaceState(null, "", address);
        else history.pushState(null, "", address);
    }

    private tell(): void {
        const changed = this.pending;
        this.pending = new Set();
        // Browsers refuse more than some hundred changes of the address in half a minute, and each takes milliseconds.
        clearTimeout(this.written);
        const moves = [...changed].every((key) => key === "from" || key === "to");
        this.written = window.setTimeout(() => this.write(), moves ? REST_MS : 120);
        for (const listener of this.listeners) listener(this.state, changed);
    }
}
