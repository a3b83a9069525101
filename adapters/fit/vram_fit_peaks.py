"""Compares the peaks of single steps, for programs whose steps are never alike: one logs every tenth step, another has sentences of
different lengths. If the last steps all had the same peak, the next one will not need more."""
REPEATED = 10  # this many last steps must have the same peak, without a new highest one
SLACK = 1000  # peaks may differ by one part in this many, such as by a logged number


class Peaks:
    def __init__(self, recorder):
        self.recorder, self.next = recorder, REPEATED

    def repeat(self):
        """Called at the end of each step. Examines the history when the number of steps has doubled since the last time."""
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
    """Returns the maximum of live bytes between each two consecutive marks; `live` is the number at the end. Returns an empty list if the
    history does not reach back far enough."""
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
