// fit_engine_plan.h: `vram fit --write-plan`: keeps what an engine wrote for its next start, if it served all requests.
#ifndef CLI_FIT_ENGINE_PLAN_H
#define CLI_FIT_ENGINE_PLAN_H

struct fit_answer;

// Copies the files that the engine left in the run's folder (adapters/fit/vram_fit_plan.py) into `folder`, and says how to use them and
// how much memory they leave. Returns CLI_OK; CLI_FINDING, after the reason, if there is no plan; another exit code after a line on
// standard error.
int fit_engine_plan_keep(const struct fit_answer *answer, const char *folder);

#endif
