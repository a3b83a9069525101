// Shared by the parts of the page's frame: the App that views see, and the members that only the frame uses.
import type { App, Matches, View } from "./app";
import type { State } from "./state";

export type Changed = ReadonlySet<keyof State> | null; // null: everything, because another recording is open

// A part of the frame, outside the views. update() is called after every change.
export interface Panel {
    readonly root: HTMLElement;
    update(state: State, changed: Changed): void;
}

export type Opened = { name: string; file: Blob };

export interface Frame extends App {
    readonly views: readonly View[];
    view(): View;
    setMatches(matches: Matches | undefined): void;
    readonly opened: readonly Opened[]; // files read by this page, not a server's
    openAll(files: readonly Opened[]): Promise<void>;
    readonly partial: boolean; // only the beginning of the file has been read so far
    setWindow(from: number, to: number): void; // clamped; the whole history becomes "no window"
}
