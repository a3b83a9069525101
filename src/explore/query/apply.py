def sub(p,*pairs):
    s=open(p).read()
    for a,b in pairs:
        assert a in s,(p,a)
        s=s.replace(a,b,1)
    open(p,'w').write(s)
W='/tmp/w/page/viewer/web/src/'
open(W+'pages.ts','w').write('''// Pages with recordings inside, as `vram view -o` writes them: this page writes such ones, too, and opens what is inside of them.
import type { Opened } from "./frame";
import { bytesOfBase64 } from "./engine";

const KIND = 'script[type="application/x-vram"]';
const MOST_BYTES = 400 * 2 ** 20; // browsers refuse texts beyond about 500 MB

export function embeddedIn(page: Document): Opened[] {
    return [...page.querySelectorAll<HTMLScriptElement>(KIND)].map((element) => ({ name: element.dataset.name ?? "recording", file: new Blob([bytesOfBase64(element.textContent!.trim())]) }));
}

// What is inside where a file is such a page; else the file. Nothing of it runs: it is parsed, not shown.
export async function unpacked(given: readonly Opened[]): Promise<Opened[]> {
    const all: Opened[] = [];
    for (const item of given) {
        const page = /\\.html?$/i.test(item.name) && item.file.size < MOST_BYTES ? await item.file.text() : "";
        const inside = page.includes("<title>vram") && page.includes("application/x-vram") ? embeddedIn(new DOMParser().parseFromString(page, "text/html")) : [];
        all.push(...(inside.length > 0 ? inside : [item]));
    }
    return all;
}

async function base64(file: Blob): Promise<string> {
    const zipped = new Uint8Array(await new Response(file.stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer());
    let text = "";
    // A multiple of three: the parts can be put together.
    for (let at = 0; at < zipped.length; at += 24576) text += btoa(String.fromCharCode(...zipped.subarray(at, at + 24576)));
    return text;
}

// This page with the recordings inside. Scripts and style stay as they are, so that the policy still names them.
export async function pageOf(opened: readonly Opened[]): Promise<Blob> {
    const total = opened.reduce((sum, { file }) => sum + file.size, 0);
    if (total > MOST_BYTES) throw new Error("the recordings are too large for a page: `vram view --serve` opens them");
    const page = document.documentElement.cloneNode(true) as HTMLElement;
    page.removeAttribute("data-theme");
    page.querySelector("#app")!.replaceChildren();
    page.querySelector("title")!.textContent = "vram";
    for (const old of page.querySelectorAll(KIND)) old.remove();
    const last = [...page.querySelectorAll("body > script")].at(-1)!;
    for (const { name, file } of opened) {
        const script = document.createElement("script");
        script.setAttribute("type", "application/x-vram");
        script.setAttribute("data-name", name);
        script.textContent = await base64(file);
        last.before(script, "\\n");
    }
    for (const other of page.querySelectorAll("body > :not(script):not(#app)")) other.remove();
    return new Blob([`<!DOCTYPE html>\\n${page.outerHTML}\\n`], { type: "text/html" });
}
''')
s=open(W+'main.ts').read()
i=s.index('// Recordings that `vram view` has put into the page.'); j=s.index('async function main()')
s=s[:i]+s[j:]
s=s.replace('const files = embedded();','const files = embeddedIn(document);')
s=s.replace('import { bytesOfBase64, WorkerEngine, type Engine } from "./engine";','import { WorkerEngine, type Engine } from "./engine";')
s=s.replace('import { SearchBox }','import { embeddedIn, unpacked } from "./pages";\nimport { SearchBox }')
a='''    async openAll(files: readonly Opened[]): Promise<void> {
'''
assert a in s
s=s.replace(a,'''    async openAll(given: readonly Opened[]): Promise<void> {
        const files = await unpacked(given);
''')
a='''                }, early);
'''
assert a in s
s=s.replace(a,a+'''                this.opened.push({ name, file });
''')
a='''    recordings: Recording[] = [];
'''
s=s.replace(a,a+'''    readonly opened: Opened[] = [];
''',1)
open(W+'main.ts','w').write(s)
sub(W+'frame.ts',('''    openAll(files''','''    readonly opened: readonly Opened[]; // what was read here; a server's files are not
    openAll(files'''))
sub(W+'save.ts',('''export function saveCommands''','''async function savePage(frame: Frame): Promise<void> {
    try {
        download(await pageOf(frame.opened), fileName(frame, "html"));
    } catch (error) {
        frame.say(`The page could not be saved: ${(error as Error).message}`);
    }
}

export function saveCommands'''),('''        { title: "Copy link''','''        { title: "This page, with the recordings", disabled: frame.opened.length === 0, run: () => void savePage(frame) },
        { title: "Copy link'''),('''import type { Command } from "./menu";''','''import type { Command } from "./menu";
import { pageOf } from "./pages";'''))
sub('/tmp/w/page/viewer/web/tests/choices.test.mjs',('''// Made by hand: long names''','''// A page saved by the page has the recording inside, is read by the command, and by the page itself.
async function pages(page) {
    await go(page, { view: "timeline" });
    const path = join(mkdtempSync(join(tmpdir(), "vram-page-")), "saved.html");
    writeFileSync(path, await saved(page, "This page"));
    equal((await asked("report", "--json", path)).devices, (await asked("report", "--json", example)).devices, "the command reads the saved page");
    for (const inside of [false, true]) {
        const second = await openPage(inside ? html : path);
        if (inside) await openFiles(second.page, [path]);
        await settles(second.page, () => document.querySelector("select.files option")?.textContent, null, "oom.pickle.gz", "the recording is inside");
        await settles(second.page, () => document.title, null, await page.title(), "and shown as before");
        equal(second.errors, [], "errors of the saved page");
        await second.browser.close();
    }
}

// Made by hand: long names'''),('''        await range(page);
''','''        await range(page);
        await pages(page);
'''),('import { openFiles, openPage } from "./browser.mjs";','import { openFiles, openPage, saved } from "./browser.mjs";'))
sub('/tmp/w/page/docs/guides/view.md',('''- **Save** writes the view as SVG or PNG and its table as CSV.''','''- **Save** writes the view as SVG or PNG, its table as CSV, and the page with the recordings inside, as `vram view -o` does; the page opens such
  pages, too.'''))
