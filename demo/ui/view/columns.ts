import { html, nothing, type TemplateResult } from "lit/html.js";
import type { ColumnState, NumberStatistics } from "../../reader/state.js";
import type { App } from "../app.js";
import { figure, plural } from "../format.js";
import { icons } from "../icons.js";
import { histogram } from "./chart.js";

/** The columns of a table with what their values look like. */
export function columns(_app: App, list: readonly ColumnState[]): TemplateResult | typeof nothing {
  if (list.length === 0) return nothing;
  return html`<details class="part" open>
    <summary>${icons.chevron}Columns<span class="fine">${list.length}</span></summary>
    <ul class="columns">
      ${list.map(column)}
    </ul>
  </details>`;
}

function column(state: ColumnState): TemplateResult {
  return html`<li class="column">
    <h4>${state.name}<span class="type">${state.type}</span></h4>
    ${state.numbers ? numbers(state.name, state.numbers) : nothing}
    ${state.dates ? html`<p class="range">${state.dates.from} – ${state.dates.to}</p>` : nothing}
    ${state.type === "text" && (state.top[0]?.count ?? 0) > 1 ? top(state) : nothing}
    <p class="fine">${remarks(state).join(", ")}</p>
  </li>`;
}

function remarks(state: ColumnState): string[] {
  if (state.type === "empty") return ["no values"];
  return [
    plural(state.count, "value"),
    `${figure(state.unique)} different`,
    ...(state.missing > 0 ? [`${figure(state.missing)} missing`] : []),
  ];
}

function numbers(name: string, found: NumberStatistics): TemplateResult {
  const facts: readonly (readonly [string, number])[] = [
    ["min", found.min],
    ["median", found.median],
    ["mean", found.mean],
    ["max", found.max],
    ["sum", found.sum],
  ];
  return html`
    ${histogram(name, found.bins)}
    <dl class="statistics">
      ${facts.map(
        ([label, value]) =>
          html`<div>
            <dt>${label}</dt>
            <dd>${figure(value)}</dd>
          </div>`,
      )}
    </dl>
  `;
}

function top(state: ColumnState): TemplateResult {
  const highest = Math.max(1, ...state.top.map(({ count }) => count));
  return html`<ul class="top">
    ${state.top.slice(0, 5).map(
      ({ value, count }) =>
        html`<li>
          <span class="top-value">${value}</span
          ><svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
            <rect width=${(100 * count) / highest} height="4" rx="2" /></svg
          ><span class="line">${figure(count)}</span>
        </li>`,
    )}
  </ul>`;
}
