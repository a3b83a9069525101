// The views, in the order of their tabs.
import type { ViewMaker } from "../app";
import { timelineView } from "./timeline";

export const views: ViewMaker[] = [timelineView];
