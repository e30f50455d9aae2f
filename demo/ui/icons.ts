import { html, svg, type SVGTemplateResult, type TemplateResult } from "lit/html.js";

const icon = (paths: SVGTemplateResult): TemplateResult =>
  html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">${paths}</svg>`;

export const icons = {
  send: icon(svg`<path d="M10 16V4.5M5 9.2l5-5 5 5" />`),
  stop: icon(svg`<rect class="solid" x="5.5" y="5.5" width="9" height="9" rx="1.5" />`),
  attach: icon(
    svg`<path d="M14.8 9.3 9.6 14.6a3.3 3.3 0 0 1-4.7-4.7l5.6-5.6a2.2 2.2 0 0 1 3.1 3.1l-5.5 5.5a1.1 1.1 0 0 1-1.5-1.5l4.9-5" />`,
  ),
  plus: icon(svg`<path d="M10 4.5v11M4.5 10h11" />`),
  close: icon(svg`<path d="m5.5 5.5 9 9m0-9-9 9" />`),
  file: icon(svg`<path d="M5.5 2.8h6L15 6.3v10.9H5.5z" /><path d="M11.2 3v3.6H15M8 10.5h4.5M8 13.5h4.5" />`),
  table: icon(
    svg`<rect x="3.2" y="4.2" width="13.6" height="11.6" rx="1.5" /><path d="M3.5 8.2h13M3.5 12h13M8.3 8.2v7.5" />`,
  ),
  menu: icon(svg`<path d="M3.5 5.5h13M3.5 10h13M3.5 14.5h13" />`),
  panel: icon(svg`<rect x="3" y="3.8" width="14" height="12.4" rx="1.8" /><path d="M12 4v12" />`),
  tool: icon(svg`<circle cx="8.7" cy="8.7" r="4.7" /><path d="m12.3 12.3 4 4" />`),
  thought: icon(svg`<path d="M10 3.2a5 5 0 0 0-2.8 9.1v1.9h5.6v-1.9A5 5 0 0 0 10 3.2ZM8 17h4" />`),
  chevron: icon(svg`<path d="m7.5 5 5 5-5 5" />`),
  down: icon(svg`<path d="M10 4v11.5M5 10.8l5 5 5-5" />`),
  again: icon(svg`<path d="M15.6 10a5.6 5.6 0 1 1-1.7-4M14.4 2.8v3.6h-3.6" />`),
  alert: icon(svg`<path d="M10 3.2 17.3 16H2.7zM10 8v3.6M10 13.9v.1" />`),
  tabs: icon(
    svg`<rect x="2.8" y="6.4" width="10.8" height="10.2" rx="1.6" /><path d="M6.5 3.6h9a1.7 1.7 0 0 1 1.7 1.7v8" />`,
  ),
};
