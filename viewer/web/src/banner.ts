// The banner above every view: the device that ran out of memory, the cause, and a remedy. It can be folded to its first sentence.
import { settingLine, type Cure } from "./views/oom-cure";
import { sentence, type Cause } from "./views/oom-parts";
import type { Device } from "./app";
import { add, clear, el } from "./dom";
import { bytes, count } from "./format";
import type { Changed, Frame, Panel } from "./frame";
import { askOnce } from "./once";
import { shortSites } from "./sites";
import { recall, remember, UNCHOSEN, type State } from "./state";
import { capital, deviceName, failedIn, placeName, type Trouble } from "./trouble";
import { prepare } from "./working";

type Mark = { kind: string; event: number; bytes?: number };
type CureJson = { cure: Cure | null };

const MOST_EVENTS = 2_000_000; // with more events, the cause is analyzed only on demand
const MOST_REPLAYED = 200_000; // with more events, the history is replayed only on demand
const FOLDED = "vram.banner.folded";

// Returns every call site that the cause names.
const sitesOf = (cause: Cause): (string | null | undefined)[] => [cause.site, cause.pin_site, ...[...(cause.holders ?? []), ...(cause.libraries ?? []), ...(cause.demand?.sites ?? []), ...(cause.demand?.remedies ?? [])].map(({ site }) => site)];

// Returns the reason in a sentence, with the largest holder if the reason names no call site.
function whyText(cause: Cause, text: string): string {
    const named = (site: string | null | undefined) => site && !text.includes(site);
    const most = cause.holders?.[0];
    const who = named(cause.pin_site) ? ` ${cause.pin_blocks === 1 ? "It" : "The largest of them"} was allocated by ${cause.pin_site}.` : most && named(most.site) && !/ by \S+:\d+/.test(text) && !most.site.startsWith("<") ? ` Most was allocated by ${most.site} (${bytes(most.bytes)}).` : "";
    const asked = named(cause.site) && !who.includes(cause.site) && !cause.site.startsWith("<") ? ` Requested by ${cause.site}.` : "";
    const library = cause.libraries?.find(({ site }) => named(site) && !site.startsWith("<"));
    const through = library ? ` ${bytes(library.bytes)} of it was allocated through ${library.site}.` : "";
    return `${sentence(text)}${who}${through}${asked}`;
}

// Returns the change to the program to make: the first remedy that suffices, else the first.
function changeText({ demand, advice }: Cause): string {
    const remedy = demand?.remedies.find(({ fits }) => fits) ?? demand?.remedies[0];
    return sentence(remedy?.text ?? advice);
}

// Returns the remedies, briefly; the out-of-memory view has the details.
function helpOf(cure: Cure | null, cause: Cause): (Node | string)[] {
    const change = shortSites(changeText(cause), sitesOf(cause));
    if (!cure) return [change];
    const room = cure.needed_bytes > 0 ? `needs ${bytes(cure.needed_bytes)} of the ${bytes(cure.room_bytes)} available` : `fits in the ${bytes(cure.room_bytes)} available`;
    if (cure.verdict === "setting") return [settingLine(cure.variable, cure.conf ?? ""), room];
    if (cure.verdict === "limit") return [cure.text];
    if (cure.verdict === "demand" || cure.verdict === "none") return change === "" ? [] : [`${change} No setting helps.`];
    return [cure.usual ? `${cure.usual} usually helps after such a failure; here it is not proven.` : change];
}

export class TroubleBanner implements Panel {
    private readonly head = el("p", { role: "status", class: "trouble-what" });
    private readonly why = el("p", { class: "trouble-why" });
    private readonly help = el("p", { class: "trouble-help" });
    private readonly more = el("div", { id: "trouble-more", class: "trouble-more" }, this.why, this.help);
    private readonly lead = el("button", { type: "button", class: "link", onclick: () => this.go() });
    private readonly fold: HTMLButtonElement = el("button", { type: "button", class: "quiet icon trouble-fold", "aria-controls": "trouble-more", onclick: () => this.setFolded(!this.more.hidden) });
    readonly root = el("section", { class: "trouble", "aria-label": "Out of memory", hidden: true }, this.head, this.lead, this.fold, this.more);
    private asked = 0;
    private said = ""; // recording and device of the text, and the ones on screen
    private trouble: Trouble | undefined;

    constructor(private readonly frame: Frame) {
        this.setFolded(recall(FOLDED) === "yes");
    }

    private setFolded(folded: boolean): void {
        this.more.hidden = folded;
        this.fold.textContent = folded ? "\u25b8" : "\u25be";
        this.fold.title = folded ? "Show why, and what helps" : "Fold this message";
        this.fold.setAttribute("aria-label", this.fold.title);
        this.fold.setAttribute("aria-expanded", String(!folded));
        remember(FOLDED, folded ? "yes" : "no");
        if (this.root.isConnected) window.dispatchEvent(new Event("resize"));
    }

    update(state: State, changed: Changed): void {
        if (changed === null || changed.has("rec") || changed.has("device")) void this.load(state.rec);
        this.place();
    }

    private place(): void {
        this.root.hidden = this.trouble === undefined || this.frame.store.state.view === "oom" || !this.frame.device();
    }

    private go(): void {
        const { trouble, frame } = this;
        if (!trouble) return;
        const here = this.isHere(trouble);
        frame.store.set({ view: "oom", ...(here ? {} : { rec: trouble.rec, device: trouble.device.device, ...UNCHOSEN }) });
    }

    private isHere = ({ rec, device }: Trouble): boolean => rec === this.frame.store.state.rec && device.device === this.frame.device()?.device;

    private async load(rec: number): Promise<void> {
        const { frame } = this;
        const ticket = ++this.asked;
        const overtaken = () => ticket !== this.asked;
        const trouble = failedIn(frame.recordings, rec);
        if (!trouble || frame.partial) {
            this.trouble = undefined;
            this.said = "";
            return this.place();
        }
        const about = { rec: trouble.rec, device: trouble.device.device };
        const { marks } = (await askOnce<{ marks: Mark[] }>(frame, { name: "marks", ...about })).json;
        if (overtaken() || !frame.device()) return;
        this.show(trouble, marks.filter((mark) => mark.kind === "oom").at(-1));
        // For another recording, the banner only names the recording and the device.
        if (trouble.rec !== rec || trouble.device.events > MOST_EVENTS) return;
        const { oom_causes: causes } = (await askOnce<{ oom_causes: Cause[] }>(frame, { name: "oom", ...about })).json;
        const cause = causes.at(-1);
        if (overtaken() || !cause) return;
        this.explain(cause);
        const cure = await this.findCure(trouble, about, overtaken);
        if (!overtaken()) this.tell(cure, cause);
    }

    // Searches for the cure, keeping the line's place meanwhile. Returns null if that would take too long.
    private async findCure({ device }: Trouble, about: { rec: number; device: number }, overtaken: () => boolean): Promise<Cure | null> {
        if (device.events > MOST_REPLAYED) return null;
        const question = { name: "cure", ...about };
        if (this.help.childElementCount === 0) add(this.help, el("b", {}, "What helps: "), "looking for a setting that would have fit\u2026");
        if (!(await prepare(this.frame.engine, question, () => {}, overtaken))) return null;
        return (await askOnce<CureJson>(this.frame, question)).json.cure;
    }

    private explain(cause: Cause): void {
        // Show the beginning of a long reason, which names the holder; the title has all of it.
        const beginning = cause.demand?.text;
        const short = beginning && cause.text.startsWith(beginning) ? beginning : cause.text;
        this.why.textContent = shortSites(whyText(cause, short), sitesOf(cause));
        this.why.title = whyText(cause, cause.text);
    }

    private tell(cure: Cure | null, cause: Cause): void {
        const parts = helpOf(cure, cause);
        clear(this.help);
        this.help.dataset.verdict = cure?.verdict ?? "";
        if ((parts.at(-1) ?? "") !== "") add(this.help, el("b", {}, "What helps: "), ...parts);
    }

    private show(trouble: Trouble, last: Mark | undefined): void {
        const { rec, device: worst } = trouble;
        const shown = { rec: this.frame.store.state.rec, device: this.frame.device()! };
        const here = this.isHere(trouble);
        const times = worst.ooms === 1 ? "" : ` ${count(worst.ooms)} times`;
        const what = last === undefined ? "" : `: ${worst.ooms === 1 ? "" : "the last time "}${bytes(last.bytes ?? 0)} requested at event ${count(last.event)}`;
        const away = here ? "" : ` This is ${this.placeOf(shown, trouble)}.`;
        this.head.replaceChildren(el("b", {}, `${this.subject(trouble, shown)} ran out of memory${times}`), `${what}.${this.others(trouble)}${away}`);
        this.lead.textContent = `Why it failed${here ? "" : ` ${rec === shown.rec ? "on" : "in"} ${this.placeOf(trouble, shown)}`}, and what to change`;
        const said = `${rec} ${worst.device} ${worst.events} ${shown.rec} ${shown.device.device}`;
        if (said !== this.said) this.why.textContent = this.why.title = this.help.textContent = "";
        this.said = said;
        this.trouble = trouble;
        this.place();
    }

    // Names the difference between the two: the device or the recording.
    private placeOf({ rec, device }: Trouble, other: Trouble): string {
        return rec === other.rec ? deviceName(device) : placeName(this.frame.recordings[rec], device);
    }

    private subject(trouble: Trouble, shown: Trouble): string {
        const { devices } = this.frame.recordings[trouble.rec];
        if (trouble.rec === shown.rec && devices.length === 1) return "The program";
        const place = this.placeOf(trouble, shown);
        return devices.length > 1 ? capital(place) : place; // keep a file's name unchanged
    }

    // Lists the other failures: other devices of the recording, and the number of other recordings.
    private others({ rec, device }: Trouble): string {
        const { recordings } = this.frame;
        const failed = (all: readonly Device[]) => all.some(({ ooms }) => ooms > 0);
        const elsewhere = recordings[rec].devices.filter((one) => one !== device && one.ooms > 0);
        const names = elsewhere.map((one) => `${deviceName(one)} (${count(one.ooms)})`);
        const more = recordings.filter(({ devices }, i) => i !== rec && failed(devices)).length;
        if (more > 0) names.push(`${count(more)} other recording${more === 1 ? "" : "s"}`);
        return names.length === 0 ? "" : ` So did ${names.join(", ")}.`;
    }
}
