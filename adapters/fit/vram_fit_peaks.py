"""Peaks of single steps, of a program whose steps are never alike: one logs every tenth step, another has sentences of its own length. Where the
last steps all needed as much at their highest, the next one needs no more."""
REPEATED = 10  # steps whose peaks are the same, and in which nothing was reserved
SLACK = 1000  # of so many bytes one may differ: a number more that is logged


class Peaks:
    def __init__(self, recorder):
        self.recorder, self.next = recorder, REPEATED

    def repeat(self):
        """Asked at the end of each step. The history is looked at when the steps have doubled since the last time."""
        recorder = self.recorder
        if recorder.steps < self.next or recorder.steps - recorder.highest_step < REPEATED or len(recorder.marks) <= REPEATED:
            return False
        self.next = 2 * recorder.steps
        found = False
        for device, trace in enumerate(recorder.torch.cuda.memory._snapshot()["device_traces"]):
            stats = recorder.stats(device)
            if not trace or not stats:
                continue
            peaks = of_steps(trace, recorder.marks[-REPEATED - 1 :], stats.get("requested_bytes", stats["allocated_bytes"])["all"]["current"])
            if not peaks or max(peaks) - min(peaks) > max(peaks) // SLACK:
                return False
            found = True
        return found


def of_steps(trace, marks, live):
    """The highest sum of live bytes between each two marks; `live` are so many at the end. Empty: the history does not go back so far."""
    peaks, step = [live] * (len(marks) - 1), len(marks) - 2
    for entry in reversed(trace):
        while step >= 0 and entry["time_us"] < marks[step]:
            step -= 1
            if step >= 0:
                peaks[step] = live
        if step < 0:
            return peaks
        if entry["action"] == "alloc":
            peaks[step] = max(peaks[step], live)
            live -= entry["size"]
        elif entry["action"] == "free_completed":
            live += entry["size"]
            peaks[step] = max(peaks[step], live)
    return []
