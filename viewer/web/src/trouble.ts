// Finds the trouble: an out-of-memory error, else the highest peak. The page opens on its recording and device; the menus and the
// out-of-memory tab count the failed requests.
import type { Device, Recording } from "./app";
import type { Engine } from "./engine";
import { count } from "./format";

export const deviceName = (device: Device): string => (device.host ? "pinned host" : `device ${device.device}`);
export const ooms = (devices: readonly Device[]): number => devices.reduce((sum, device) => sum + device.ooms, 0);

// Returns "rank9.pickle", or "device 1 of rank9.pickle" if it has several devices.
export const placeName = ({ name, devices }: Recording, device: Device): string => (devices.length > 1 ? `${deviceName(device)} of ${name}` : name);
export const capital = (text: string): string => `${text[0].toUpperCase()}${text.slice(1)}`;

// Returns a menu's addition to a name.
export const oomMark = (failed: number): string => (failed > 0 ? ` \u26a0 ${count(failed)} OOM` : "");

// If several ran out of memory, the one with the most failed requests is worse.
const worse = (a: Device, b: Device): number => a.ooms - b.ooms || Number(b.host) - Number(a.host) || a.peak_bytes - b.peak_bytes || a.events - b.events;

export function worstDevice(devices: readonly Device[]): Device | undefined {
    return devices.reduce<Device | undefined>((worst, device) => (!worst || worse(device, worst) > 0 ? device : worst), undefined);
}

export type Trouble = { rec: number; device: Device };

// Returns the recording with the worst device; the first of equals. Starts at `first`, to consider only the recordings opened last.
export function worstRecording(recordings: readonly Recording[], first = 0): Trouble | undefined {
    let worst: Trouble | undefined;
    for (let rec = first; rec < recordings.length; rec++) {
        const device = worstDevice(recordings[rec].devices);
        if (device && (!worst || worse(device, worst.device) > 0)) worst = { rec, device };
    }
    return worst;
}

// Returns the device that ran out of memory in the shown recording, else in another open one.
export function failedIn(recordings: readonly Recording[], rec: number): Trouble | undefined {
    const here = worstDevice(recordings[rec]?.devices ?? []);
    if (here && here.ooms > 0) return { rec, device: here };
    const worst = worstRecording(recordings);
    return worst && worst.device.ooms > 0 ? worst : undefined;
}

// Counts each device's failed requests, unless `known` has the count.
export async function countOoms(engine: Engine, recordings: readonly Recording[], known: readonly Recording[]): Promise<void> {
    for (const [rec, { devices }] of recordings.entries()) {
        for (const [i, device] of devices.entries()) {
            const before = known[rec]?.devices[i];
            if (before?.device === device.device && before.events === device.events) device.ooms = before.ooms;
            else device.ooms = device.events === 0 ? 0 : (await engine.ask<{ total: number }>({ name: "events", rec, device: device.device, action: "oom", count: 1 })).json.total;
        }
    }
}
