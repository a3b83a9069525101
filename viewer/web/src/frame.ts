// What the parts of the page's frame share: the App that views see, and what only the frame does.
import type { App, Matches, View } from "./app";
import type { State } from "./state";

export type Changed = ReadonlySet<keyof State> | null; // null: everything, another recording is open

// A part of the frame, around the views. update() is called after every change.
export interface Panel {
    readonly root: HTMLElement;
    update(state: State, changed: Changed): void;
}

export type Opened = { name: string; file: Blob };

export interface Frame extends App {
    readonly views: readonly View[];
    view(): View;
    setMatches(matches: Matches | undefined): void;
    readonly opened: readonly Opened[]; // what was read here; a server's files are not
    openAll(files: readonly Opened[]): Promise<void>;
    readonly partial: boolean; // what is on show is the beginning of a file that is still read
    setWindow(from: number, to: number): void; // clamped; the whole history becomes "no window"
}
