// Shares questions about a whole device or recording: parts of the page that ask the same get the same answer.
import type { App } from "./app";
import { questionText, type Engine, type Question } from "./engine";
import type { Answer } from "./protocol";

const MOST = 16;
const kept = new WeakMap<Engine, Map<string, Promise<Answer<never>>>>();

export function askOnce<T>(app: App, question: Question): Promise<Answer<T>> {
    const answers = kept.get(app.engine) ?? new Map<string, Promise<Answer<never>>>();
    kept.set(app.engine, answers);
    // The key includes the number of events, because the beginning of a file differs from the whole.
    const events = app.recordings.map(({ name, devices }) => [name, devices.map((device) => device.events)]);
    const key = JSON.stringify([questionText(question), events]);
    const known = answers.get(key);
    if (known) return known as Promise<Answer<T>>;
    const asked = app.engine.ask<T>(question);
    answers.set(key, asked as Promise<Answer<never>>);
    if (answers.size > MOST) answers.delete(answers.keys().next().value!);
    asked.catch(() => answers.delete(key));
    return asked;
}
