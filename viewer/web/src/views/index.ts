// The views, in the order of their tabs.
import type { ViewMaker } from "../app";
import { compareView } from "./compare";
import { leaksView } from "./leaks";
import { mapView } from "./map";
import { peakView } from "./peak";
import { oomView } from "./oom";
import { ranksView } from "./ranks";
import { segmentsView } from "./segments";
import { settingsView } from "./settings";
import { stateView } from "./state";
import { stepView } from "./step";
import { timelineView } from "./timeline";

export const views: ViewMaker[] = [ranksView, timelineView, stateView, segmentsView, mapView, peakView, stepView, leaksView, oomView, compareView, settingsView];
