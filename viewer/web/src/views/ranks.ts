// Ranks: a row for each kind of ranks, if the recordings are of a job that `vram fit --fold` ran; below it, a row for each device of every open
// recording, and which of them differ from the others.
import type { App, View } from "../app";
import { el } from "../dom";
import { bytes, count, counted } from "../format";
import { embeddedKinds, type Kind, type Kinds } from "../kinds";
import { barCell, SortTable } from "../table";
import { UNCHOSEN } from "../state";
import { deviceName, placeName, type Trouble } from "../trouble";

type Rank = Trouble & { name: string; apart: number }; // difference of its peak from the median

// A peak that differs from the median by a twentieth is unusual, as in the table of `vram report`.
const UNLIKE = 1 / 20;

// Returns the median.
const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

class Ranks {
    private readonly said = el("p", { class: "ranks-said" });
    private readonly table: SortTable<Rank>;
    private readonly kinds: KindsTable | null;
    readonly root: HTMLElement;
    private middle = 0;
    private highest = 1;
    private shown: readonly unknown[] = [];

    constructor(private readonly app: App) {
        const { store } = app;
        this.table = new SortTable<Rank>(
            "Ranks",
            [
                { title: "Recording", value: (rank) => this.nameOf(rank) },
                { title: "Unlike the others", number: true, value: (rank) => this.unlikeness(rank), cell: (rank) => this.unlike(rank) },
                { title: "Peak allocated", number: true, value: ({ device }) => device.peak_bytes, cell: ({ device }) => barCell(device.peak_bytes, this.highest, bytes(device.peak_bytes)) },
                { title: "Reserved", number: true, value: ({ device }) => device.reserved_peak_bytes, cell: ({ device }) => (device.reserved_peak_bytes > 0 ? bytes(device.reserved_peak_bytes) : "not known") },
                { title: "Out of memory", number: true, value: ({ device }) => device.ooms, cell: ({ device }) => (device.ooms > 0 ? count(device.ooms) : "") },
                { title: "Events", number: true, value: ({ device }) => device.events, cell: ({ device }) => count(device.events) },
            ],
            1,
            ({ rec, device }) => store.set({ view: "timeline", rec, device: device.device, ...UNCHOSEN }),
            ({ rec, device }) => rec === store.state.rec && device.device === app.device()?.device,
        );
        const kinds = embeddedKinds(document);
        this.kinds = kinds && new KindsTable(app, kinds);
        this.root = el("div", { class: "fill ranks-view" }, this.kinds?.root, this.said, this.table.root);
    }

    // Sorts devices of one recording together.
    private nameOf = ({ rec, name, device }: Rank): string => (this.app.recordings[rec].devices.length > 1 ? `${name}, ${deviceName(device)}` : name);

    private isUnlike = ({ apart }: Rank): boolean => Math.abs(apart) > this.middle * UNLIKE;

    // Sort key: ranks that ran out of memory first, then unlike ranks by their peak's distance from the median; 0 for the others.
    private unlikeness(rank: Rank): number {
        return rank.device.ooms > 0 ? Number.MAX_SAFE_INTEGER : this.isUnlike(rank) ? Math.abs(rank.apart) : 0;
    }

    private unlike(rank: Rank): HTMLElement {
        const { apart } = rank;
        const peak = this.isUnlike(rank) ? `peak ${bytes(Math.abs(apart))} ${apart > 0 ? "above" : "below"} the median` : "";
        const failed = rank.device.ooms > 0 && el("b", { class: "ranks-failed" }, "\u26a0 ran out of memory");
        return el("span", {}, failed, failed && peak !== "" && ", ", peak);
    }

    hasKinds = (): boolean => this.kinds !== null;

    show(): void {
        const ranks = this.app.recordings.flatMap(({ name, devices }, rec) => devices.filter((device) => !device.host && (device.events > 0 || device.peak_bytes > 0)).map((device) => ({ rec, device, name, apart: 0 })));
        this.middle = median(ranks.map(({ device }) => device.peak_bytes));
        this.highest = Math.max(1, ...ranks.map(({ device }) => device.peak_bytes));
        for (const rank of ranks) rank.apart = rank.device.peak_bytes - this.middle;
        this.said.textContent = this.sentence(ranks);
        this.table.show(ranks);
        this.kinds?.show();
    }

    update(): void {
        const { rec, device } = this.app.store.state;
        const now = [this.app.recordings, rec, device];
        if (now.every((value, i) => value === this.shown[i])) return;
        this.shown = now;
        this.show();
    }

    private sentence(ranks: readonly Rank[]): string {
        const failed = ranks.filter(({ device }) => device.ooms > 0);
        const who = ({ rec, device }: Rank) => placeName(this.app.recordings[rec], device);
        const oom = failed.length === 0 ? "No device ran out of memory." : `Of these, ${who(failed[0])} ran out of memory${failed.length === 1 ? "" : `, and so did ${counted(failed.length - 1, "other")}`}.`;
        const peaks = ranks.map(({ device }) => device.peak_bytes);
        const unlike = ranks.filter(this.isUnlike).length;
        const range = ranks.length === 0 ? "" : ` Peaks are from ${bytes(Math.min(...peaks))} to ${bytes(this.highest)}, the median is ${bytes(this.middle)}; ${unlike === 0 ? "no device differs by more than 5\u202f%" : `${count(unlike)} ${unlike === 1 ? "differs" : "differ"} from it by more than 5\u202f%`}.`;
        return `${counted(this.app.recordings.length, "recording")}, ${counted(ranks.length, "device")}. ${oom}${range}`;
    }

    csv = (): string => (this.kinds ? `${this.kinds.csv()}\n` : "") + this.table.csv();
}

// A row for each kind: the peaks of its rank that reserves the most, which the row opens.
class KindsTable {
    private readonly table: SortTable<Kind>;
    readonly root: HTMLElement;

    constructor(
        private readonly app: App,
        private readonly kinds: Kinds,
    ) {
        const highest = Math.max(1, ...kinds.kinds.map((kind) => kind.reserved_bytes));
        this.table = new SortTable<Kind>(
            "Kinds of ranks",
            [
                { title: "Kind", value: ({ name }) => name },
                { title: "Ranks", number: true, value: ({ ranks }) => ranks, cell: ({ ranks }) => count(ranks) },
                { title: "Reserved", number: true, value: ({ reserved_bytes }) => reserved_bytes, cell: ({ reserved_bytes }) => barCell(reserved_bytes, highest, bytes(reserved_bytes)) },
                { title: "Peak allocated", number: true, value: ({ allocated_bytes }) => allocated_bytes, cell: ({ allocated_bytes }) => bytes(allocated_bytes) },
                { title: "Smallest card", value: ({ card }) => card ?? "not known" },
                { title: "Ran", value: ({ ran }) => ran },
            ],
            2,
            (kind) => this.open(kind),
            (kind) => this.recordingOf(kind) === app.store.state.rec,
        );
        const known = kinds.kinds.reduce((sum, { ranks }) => sum + ranks, 0);
        const rest = known < kinds.ranks ? ` ${counted(kinds.ranks - known, "rank")} of other kinds did not run.` : "";
        const why = kinds.highest === "" ? "" : ` Highest: ${kinds.highest}.`;
        const said = `${counted(kinds.ranks, "rank")} of ${counted(kinds.kinds.length, "kind")}; some of each ran for all.${rest}${why}`;
        this.root = el("section", { class: "ranks-kinds" }, el("p", { class: "ranks-said" }, said), this.table.root);
    }

    // Returns the number of the recording of the kind's rank, -1 if it is not open. `vram fit -o` calls it rank-RANK.pickle.
    private recordingOf = ({ rank }: Kind): number => (rank === null ? -1 : this.app.recordings.findIndex(({ name }) => name.startsWith(`rank-${rank}.`)));

    private open(kind: Kind): void {
        const rec = this.recordingOf(kind);
        if (rec >= 0) this.app.store.set({ view: "timeline", rec, device: -1, ...UNCHOSEN });
    }

    show = (): void => this.table.show(this.kinds.kinds);
    csv = (): string => this.table.csv();
}

export function ranksView(app: App): View {
    const ranks = new Ranks(app);
    return {
        id: "ranks",
        title: "Ranks",
        key: "r",
        available: () => app.recordings.length > 1 || (app.recordings.length === 1 && ranks.hasKinds()),
        root: ranks.root,
        keys: [["\u2191 \u2193 Enter", "move through the ranks, and open one"]],
        show: () => ranks.show(),
        update: () => ranks.update(),
        csv: ranks.csv,
    };
}
