// Chooses the groups that get distinct colours: the largest at the peak, queried once per device and grouping.
import type { App } from "../app";
import { askOnce } from "../once";
import { seedColours } from "./colour";

const SEEDED = 24; // the number of colours
const MOST_EVENTS = 2e6; // with more, the first picture would have to wait

export async function seedGroups(app: App, by: string): Promise<void> {
    const device = app.device();
    if (!device || app.partial || device.events > MOST_EVENTS) return;
    const { json } = await askOnce<{ groups: { name: string }[] }>(app, { name: "groups", rec: app.store.state.rec, device: device.device, event: "peak", by, top: SEEDED });
    seedColours(json.groups.map(({ name }) => name));
}
