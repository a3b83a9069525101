// Finds the groups of a table that contain matches of the search.
import type { App } from "./app";

type What = { rec?: number; device?: number; made?: number; event?: number | string };
type GroupsJson = { groups: { name: string; found_bytes: number }[] };

const EVER: readonly What[] = [{ made: 1 }, { event: -1 }]; // everything allocated in the recording, and what was live before it

// Returns the names of the groups that contain matches at one of these moments; null without a search.
export async function foundNames(app: App, by: string, whats: readonly What[] = EVER): Promise<ReadonlySet<string> | null> {
    const { rec, notion, search, regex } = app.store.state;
    if (!app.matches()) return null;
    const names = new Set<string>();
    for (const what of whats) {
        const { json } = await app.engine.ask<GroupsJson>({ name: "groups", rec, device: app.device()?.device, notion, ...what, by, top: 100000, find: search.trim(), find_regex: regex ? 1 : 0 });
        for (const { name, found_bytes } of json.groups) if (found_bytes > 0) names.add(name);
    }
    return names;
}
