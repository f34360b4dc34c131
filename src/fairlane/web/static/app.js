// All of it, in the order that it is needed.
import "./time.js";
import "./live.js";
import "./table.js";
import "./forms.js";
import "./log.js";
import "./chart.js";
import "./palette.js";
