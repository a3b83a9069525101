// The views, in the order of their tabs.
import type { ViewMaker } from "../app";
import { curveView } from "./curve";

export const views: ViewMaker[] = [curveView];
