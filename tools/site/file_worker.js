// Runs the script of the site's search in a frame. It normally runs in a worker, which a page opened as a file may not start.
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            this.frame = document.createElement("iframe");
            this.frame.hidden = true;
            document.body.append(this.frame);
            const inside = this.frame.contentWindow;
            this.send = inside.postMessage.bind(inside);
            inside.postMessage = (data) => this.answer(new MessageEvent("message", { data }));
            const script = inside.document.createElement("script");
            script.src = url;
            this.ready = new Promise((resolve) => (script.onload = resolve));
            inside.document.body.append(script);
        }
        answer(event) {
            this.dispatchEvent(event);
            this.onmessage?.(event);
        }
        postMessage(data) {
            void this.ready.then(() => this.send(data, "*"));
        }
        terminate() {
            this.frame.remove();
        }
    };
}
