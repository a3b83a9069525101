// The views, in the order of their tabs.
import type { ViewMaker } from "../app";
import { mapView } from "./map";
import { segmentsView } from "./segments";
import { stateView } from "./state";
import { timelineView } from "./timeline";

export const views: ViewMaker[] = [timelineView, stateView, segmentsView, mapView];
