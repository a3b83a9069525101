// What every view is given: the engine, the state, what is open, and where to say that something went wrong.
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
    ooms: number; // requests that ran out of memory; the page counts them when a recording is opened
};
export type Recording = { name: string; bytes: number; devices: Device[] };

export interface App {
    readonly engine: Engine;
    readonly store: Store;
    recordings: Recording[];
    readonly partial: boolean; // what is on show is the beginning of a file that is still read
    recording(): Recording | undefined;
    device(): Device | undefined;
    // The whole history's length on the present axis, and the present window within it.
    length(): number;
    window(): { from: number; to: number };
    // What the search box found, for highlighting; undefined when nothing is searched for or the answer is not there yet. State.found
    // changes whenever the answer does.
    matches(): Matches | undefined;
    readonly canOpen: boolean; // false where a server has the files
    chooseFiles(): void; // the system's dialog
    announce(text: string): void; // for those who hear the page: what a key has done
    say(message: string): void; // a sentence about something that failed; "" takes it back
}

export type Matches = {
    text: string;
    allocations: number; // how many allocations match, and their bytes
    bytes: number;
    has(row: number, stack: number): boolean; // an allocation's row and the number of its stack (NaN where one is not known)
};

// A key of a view and what it does, for the help: ["\u2191 \u2193", "one event back or on"].
export type KeyHelp = readonly [keys: string, meaning: string];

// A view is made once and lives as long as the page. show() is called when it is chosen, update() when the state has changed while it is
// on show; both may be called before any recording is open.
export interface View {
    readonly id: string;
    readonly title: string;
    readonly tab?: string; // a shorter title for the row of tabs
    readonly key: string; // chooses it
    available?(): boolean; // whether it has anything to show; always without it
    readonly root: HTMLElement;
    show(state: State): void;
    update(state: State, changed: ReadonlySet<keyof State>): void;
    hide?(): void; // another view takes its place: what the pointer brought up goes
    // Keys the frame does not use itself; true when it was one of the view's.
    onKey?(event: KeyboardEvent): boolean;
    readonly keys?: readonly KeyHelp[];
    // What the view can be saved as. Texts are whole files: an SVG document with its own colours (no CSS variables), a table as CSV
    // (dom.ts has csvText()). Without png() a PNG is painted from the SVG.
    svg?(): string | Promise<string>;
    png?(): Blob | Promise<Blob>;
    csv?(): string | Promise<string>;
}

export type ViewMaker = (app: App) => View;
