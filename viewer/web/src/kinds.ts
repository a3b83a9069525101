// The kinds of ranks of a job that `vram fit --fold` ran, which `vram view FOLDER/` puts into the page.
export type Kind = {
    name: string;
    ranks: number;
    ran: string; // "0, 8"
    rank: number | null; // of the recording that reserves the most; null: none
    allocated_bytes: number;
    reserved_bytes: number;
    card: string | null; // the smallest that it fits; "none"; null: not known
};
export type Kinds = { ranks: number; highest: string; kinds: Kind[] };

const isSize = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value) && value >= 0;
const textOr = <Other>(value: unknown, other: Other): string | Other => (typeof value === "string" ? value : other);

function kindOf(value: unknown): Kind | null {
    const { name, ranks, ran, rank, allocated_bytes, reserved_bytes, card } = (value ?? {}) as Record<string, unknown>;
    if (typeof name !== "string" || !isSize(ranks) || !isSize(allocated_bytes) || !isSize(reserved_bytes)) return null;
    return { name, ranks, ran: textOr(ran, ""), rank: isSize(rank) ? rank : null, allocated_bytes, reserved_bytes, card: textOr(card, null) };
}

// Returns the kinds in the page; null if there are none. The text may come from any file, so wrong members are left out.
export function embeddedKinds(page: Document): Kinds | null {
    const text = page.querySelector<HTMLMetaElement>('meta[name="vram-kinds"]')?.content;
    if (text === undefined) return null;
    try {
        const { ranks, highest_kind, kinds } = JSON.parse(text) as Record<string, unknown>;
        const rows = (Array.isArray(kinds) ? kinds : []).map(kindOf).filter((kind) => kind !== null);
        return rows.length === 0 ? null : { ranks: isSize(ranks) ? ranks : 0, highest: textOr(highest_kind, ""), kinds: rows };
    } catch {
        return null;
    }
}
