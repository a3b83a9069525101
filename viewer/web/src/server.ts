// The engine behind `vram view --serve`: a server on this machine has the files and answers the same questions.
import { questionText, type Engine, type Question } from "./engine";
import { Answer } from "./protocol";
import { visible } from "./visible";

export class ServerEngine implements Engine {
    private constructor(private readonly path: string) {}

    // Returns the engine of the server that sent the page, if a server did.
    static ofPage(): ServerEngine | null {
        const path = document.querySelector<HTMLMetaElement>('meta[name="vram-server"]')?.content;
        return path ? new ServerEngine(path) : null;
    }

    open(): Promise<void> {
        return Promise.reject(new Error("this page shows the files that the server opened: name more files on its command line"));
    }

    async ask<T>(question: Question): Promise<Answer<T>> {
        let response;
        try {
            response = await fetch(`${this.path}ask?${questionText(question)}`, { cache: "no-store" });
        } catch {
            throw new Error("the server does not answer: is `vram view --serve` still running?");
        }
        if (!response.ok) throw new Error(visible(await response.text()).trim() || `the server says ${response.status}`);
        return new Answer<T>(await response.arrayBuffer());
    }
}
