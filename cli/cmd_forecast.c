// vram forecast: predicts the peak of a run of another size.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "input.h"
#include "shared_options.h"
#include "ui.h"
#include "vram/recording.h"

int cmd_forecast(int argc, char **argv);

struct settings {
    struct moment_settings moment;
    const char *wanted;
    bool json;
};

// Splits "16=run.pickle" into the size and the path.
static bool split_operand(const char *operand, double *size, const char **path) {
    char *end;
    *size = strtod(operand, &end);
    if (end == operand || *end != '=' || end[1] == '\0') return false;
    *path = end + 1;
    return true;
}

static int print_forecast(const struct vram_forecast *forecast, bool json) {
    const struct vram_style style = ui_style();
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const enum vram_status status = json ? vram_forecast_json(forecast, ui_write, NULL, NULL, &error)
                                         : vram_forecast_text(forecast, &style, ui_write, NULL, NULL, &error);
    if (status == VRAM_OK && json) printf("\n");
    return ui_result(status, false, NULL, &error);
}

static int forecast_from(const struct settings *settings, char **operands, size_t count, const struct vram_profile_options *options) {
    struct vram_recording *recordings[VRAM_FORECAST_MOST] = {NULL};
    struct vram_forecast forecast = {.options = *options};
    char *end;
    forecast.wanted = strtod(settings->wanted, &end);
    if (end == settings->wanted || *end != '\0') return ui_usage("forecast", "vram: --size: invalid size '%s'", settings->wanted);
    int code = CLI_OK;
    for (; forecast.count < count && code == CLI_OK; forecast.count++) {
        const size_t i = forecast.count;
        struct input_facts facts;
        const char *path = NULL;
        if (!split_operand(operands[i], &forecast.size[i], &path))
            code = ui_usage("forecast", "vram: '%s' is not SIZE=FILE, e.g. 16=run.pickle", operands[i]);
        else
            code = input_named_recording(path, &recordings[i], &facts);
        forecast.recording[i] = recordings[i];
        forecast.title[i] = path == NULL ? NULL : input_base_name(path);
    }
    if (code == CLI_OK) code = print_forecast(&forecast, settings->json);
    for (size_t i = 0; i < VRAM_FORECAST_MOST; i++) vram_recording_destroy(recordings[i]);
    return code;
}

int cmd_forecast(int argc, char **argv) {
    struct settings settings = {.wanted = NULL};
    const struct args_option options[] = {
        {.name = "size",
         .kind = ARGS_STRING,
         .value = "SIZE",
         .help = "the size whose peak to forecast",
         .target = &settings.wanted,
         .also = "at"},
        ARGS_JSON("rows of the forecast", &settings.json),
        DEVICE_OPTION(&settings.moment),
        GROUP_OPTIONS(&settings.moment),
        INPUT_OPTION,
        SKIP_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "forecast",
        .usage = "--size SIZE [options] SIZE=FILE SIZE=FILE [SIZE=FILE]",
        .summary = "Forecasts the peak of another size (of the batch, the sequence, the ranks) from recordings of two or three sizes.\n"
                   "The moments that may be the peak are matched across the runs, and the bytes of each call site are extrapolated along\n"
                   "the simplest curve that fits them. The range shows what else is possible. Three sizes distinguish curves from\n"
                   "straight lines. `vram fit` makes such recordings without a GPU.",
        .examples = "  vram forecast --size 64 8=batch8.pickle 16=batch16.pickle\n"
                    "  vram forecast --size 8192 --by role 1024=a.vram 2048=b.vram 4096=c.vram\n",
        .options = options,
        .min_operands = 2,
        .max_operands = VRAM_FORECAST_MOST,
        .operand = "two or three recordings with their sizes (SIZE=FILE)",
    };
    int count, code;
    struct vram_profile_options profile = {.device = -1};
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (settings.wanted == NULL) return ui_usage("forecast", "vram: --size SIZE is missing");
    if (!moment_options(&settings.moment, &profile)) return CLI_USAGE;
    return forecast_from(&settings, argv + 1, (size_t)count, &profile);
}
