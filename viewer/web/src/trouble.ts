// Where the trouble is: an out of memory, else the highest peak. The page opens on that recording and that device; the menus and the tab of
// "Out of memory" count the requests that failed.
import type { Device, Recording } from "./app";
import type { Engine } from "./engine";
import { count } from "./format";

export const deviceName = (device: Device): string => (device.host ? "pinned host" : `device ${device.device}`);
export const ooms = (devices: readonly Device[]): number => devices.reduce((sum, device) => sum + device.ooms, 0);

// "rank9.pickle", or "device 1 of rank9.pickle" where it has several.
export const placeName = ({ name, devices }: Recording, device: Device): string => (devices.length > 1 ? `${deviceName(device)} of ${name}` : name);
export const capital = (text: string): string => `${text[0].toUpperCase()}${text.slice(1)}`;

// What a menu adds to a name.
export const oomMark = (failed: number): string => (failed > 0 ? ` \u26a0 ${count(failed)} OOM` : "");

// Of several that ran out of memory the one with the most such requests.
const worse = (a: Device, b: Device): number => a.ooms - b.ooms || Number(b.host) - Number(a.host) || a.peak_bytes - b.peak_bytes || a.events - b.events;

export function worstDevice(devices: readonly Device[]): Device | undefined {
    return devices.reduce<Device | undefined>((worst, device) => (!worst || worse(device, worst) > 0 ? device : worst), undefined);
}

export type Trouble = { rec: number; device: Device };

// The recording whose worst device is the worst of all; the first of equals. From `first` on, where only what was opened last counts.
export function worstRecording(recordings: readonly Recording[], first = 0): Trouble | undefined {
    let worst: Trouble | undefined;
    for (let rec = first; rec < recordings.length; rec++) {
        const device = worstDevice(recordings[rec].devices);
        if (device && (!worst || worse(device, worst.device) > 0)) worst = { rec, device };
    }
    return worst;
}

// What ran out of memory: in the recording on show, else in another one that is open.
export function failedIn(recordings: readonly Recording[], rec: number): Trouble | undefined {
    const here = worstDevice(recordings[rec]?.devices ?? []);
    if (here && here.ooms > 0) return { rec, device: here };
    const worst = worstRecording(recordings);
    return worst && worst.device.ooms > 0 ? worst : undefined;
}

// Fills in how many requests of each device failed, as far as `known` does not say it.
export async function countOoms(engine: Engine, recordings: readonly Recording[], known: readonly Recording[]): Promise<void> {
    for (const [rec, { devices }] of recordings.entries()) {
        for (const [i, device] of devices.entries()) {
            const before = known[rec]?.devices[i];
            if (before?.device === device.device && before.events === device.events) device.ooms = before.ooms;
            else device.ooms = device.events === 0 ? 0 : (await engine.ask<{ total: number }>({ name: "events", rec, device: device.device, action: "oom", count: 1 })).json.total;
        }
    }
}
