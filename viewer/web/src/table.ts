// A table with sortable columns and selectable rows, by mouse or keyboard. Draws a limited number of rows and gives the number of the rest.
import { clear, csvText, el } from "./dom";
import { count, counted } from "./format";

export type Column<Row> = {
    title: string;
    value(row: Row): number | string; // for sorting and for CSV
    cell?(row: Row): Node | string; // the contents of the cell; defaults to the value
    number?: boolean; // right-aligned, sorts in descending order first
};

const MOST_ROWS = 500;

export class SortTable<Row> {
    readonly root: HTMLElement;
    private readonly head = el("tr", {});
    private readonly body = el("tbody", {});
    private readonly rest = el("p", { class: "quiet-text table-rest" });
    found: ((row: Row) => boolean) | null = null; // by the search; null: no search
    private rows: readonly Row[] = [];
    private by: number;
    private falling = true;
    private sortedByReader = false;

    constructor(
        label: string,
        private readonly columns: readonly Column<Row>[],
        by: number,
        private readonly onChoose: (row: Row) => void,
        private readonly isChosen: (row: Row) => boolean,
    ) {
        this.by = by;
        const table = el("table", { class: "sort-table", "aria-label": label }, el("thead", {}, this.head), this.body);
        this.root = el("div", { class: "table-scroll" }, table, this.rest);
        this.body.addEventListener("keydown", (event) => this.onKey(event));
        this.drawHead();
    }

    // Sets the initial order, until the reader chooses another.
    fallFirst(falling: boolean): void {
        if (this.sortedByReader) return;
        this.falling = falling;
        this.drawHead();
    }

    show(rows: readonly Row[]): void {
        this.rows = rows;
        this.draw();
    }

    csv(): string {
        return csvText(this.columns.map((column) => column.title), this.sorted().map((row) => this.columns.map((column) => column.value(row))));
    }

    private drawHead(): void {
        clear(this.head);
        this.columns.forEach((column, i) => {
            const sort = i !== this.by ? "none" : this.falling ? "descending" : "ascending";
            const arrow = sort === "none" ? "" : this.falling ? " \u2193" : " \u2191";
            const button = el("button", { type: "button", onclick: () => this.sort(i) }, column.title + arrow);
            this.head.append(el("th", { scope: "col", "aria-sort": sort, class: column.number ? "number" : undefined }, button));
        });
    }

    private sort(column: number): void {
        this.sortedByReader = true;
        this.falling = column === this.by ? !this.falling : this.columns[column].number === true;
        this.by = column;
        this.drawHead();
        this.draw();
        this.head.children[column].querySelector("button")?.focus();
    }

    private sorted(): Row[] {
        const { value } = this.columns[this.by];
        const sign = this.falling ? -1 : 1;
        const compare = (a: number | string, b: number | string) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
        return [...this.rows].sort((a, b) => sign * compare(value(a), value(b)));
    }

    draw(): void {
        clear(this.body);
        const rows = this.sorted();
        for (const row of rows.slice(0, MOST_ROWS)) {
            const chosen = this.isChosen(row);
            const found = this.found?.(row) ?? false;
            const cells = this.columns.map((column) => el("td", { class: column.number ? "number" : undefined }, column.cell?.(row) ?? String(column.value(row))));
            this.body.append(el("tr", { tabindex: 0, "aria-selected": String(chosen), class: [chosen && "chosen", found && "found-row"].filter(Boolean).join(" ") || undefined, onclick: () => this.onChoose(row), onkeydown: (event: KeyboardEvent) => this.onRowKey(event, row) }, ...cells));
        }
        const marked = this.found ? rows.filter(this.found).length : 0;
        const search = this.found && rows.length > 0 ? `${count(marked)} of ${counted(rows.length, "row")} ${marked === 1 ? "matches" : "match"} the search. ` : "";
        this.rest.textContent = rows.length === 0 ? "None." : rows.length > MOST_ROWS ? `${counted(rows.length - MOST_ROWS, "more row")}; the CSV export has ${rows.length - MOST_ROWS === 1 ? "it" : "them all"}.` : "";
        this.rest.prepend(search);
    }

    private onRowKey(event: KeyboardEvent, row: Row): void {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        this.onChoose(row);
    }

    private onKey(event: KeyboardEvent): void {
        const step = event.key === "ArrowDown" ? "nextElementSibling" : event.key === "ArrowUp" ? "previousElementSibling" : null;
        const row = (event.target as HTMLElement).closest("tr");
        if (!step || !row) return;
        event.preventDefault();
        event.stopPropagation();
        (row[step] as HTMLElement | null)?.focus();
    }
}

// Returns a bar for a share of the whole, with its number.
export function barCell(value: number, whole: number, text: string, colour?: string): HTMLElement {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${whole > 0 ? Math.max(0, Math.min(100, (100 * value) / whole)) : 0}%`;
    if (colour) bar.style.background = colour;
    return el("span", { class: "bar-cell" }, el("span", { class: "bar-room" }, bar), el("span", { class: "bar-text" }, text));
}
