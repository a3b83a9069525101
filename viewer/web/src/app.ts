// Everything that a view gets: the engine, the state, the open recordings, and ways to report errors.
import type { Engine } from "./engine";
import type { State, Store } from "./state";

export type Device = {
    device: number;
    host: boolean;
    events: number;
    segments: number;
    allocations: number;
    peak_bytes: number;
    peak_event: number;
    active_peak_bytes: number;
    active_peak_event: number;
    reserved_peak_bytes: number;
    reserved_end_bytes: number;
    has_times: boolean;
    first_time_us?: number;
    duration_us?: number;
    ooms: number; // requests that ran out of memory; counted when a recording is opened
};
export type Recording = { name: string; bytes: number; devices: Device[] };

export interface App {
    readonly engine: Engine;
    readonly store: Store;
    recordings: Recording[];
    readonly partial: boolean; // only the beginning of the file has been read so far
    recording(): Recording | undefined;
    device(): Device | undefined;
    // The length of the whole history on the current axis, and the current window in it.
    length(): number;
    window(): { from: number; to: number };
    // The matches of the search box, for highlighting; undefined without a search or before the answer. State.found changes whenever the
    // answer does.
    matches(): Matches | undefined;
    readonly canOpen: boolean; // false if a server has the files
    chooseFiles(): void; // the system's dialog
    announce(text: string): void; // announces the result of a key press to users of a screen reader
    say(message: string): void; // shows an error message; "" removes it
}

export type Matches = {
    text: string;
    allocations: number; // matching allocations, and their bytes
    bytes: number;
    has(row: number, stack: number): boolean; // an allocation's row and its stack's number (NaN if unknown)
};

// A view's key and its meaning, for the help: ["\u2191 \u2193", "one event back or forward"].
export type KeyHelp = readonly [keys: string, meaning: string];

// A view is created once and lives as long as the page. show() is called when it is chosen, update() when the state changes while it is
// visible. Both may be called before any recording is open.
export interface View {
    readonly id: string;
    readonly title: string;
    readonly tab?: string; // a shorter title for the row of tabs
    readonly key: string; // the key that chooses it
    available?(): boolean; // whether it has anything to show; if absent, always
    readonly root: HTMLElement;
    show(state: State): void;
    update(state: State, changed: ReadonlySet<keyof State>): void;
    hide?(): void; // another view is shown: close everything that the pointer opened
    // Handles keys that the frame does not use. Returns true if the view used the key.
    onKey?(event: KeyboardEvent): boolean;
    readonly keys?: readonly KeyHelp[];
    // The formats in which the view can be saved. Texts are whole files: an SVG document with its own colours (no CSS variables), a table
    // as CSV (csvText() in dom.ts). Without png(), a PNG is painted from the SVG.
    svg?(): string | Promise<string>;
    png?(): Blob | Promise<Blob>;
    csv?(): string | Promise<string>;
}

export type ViewMaker = (app: App) => View;
