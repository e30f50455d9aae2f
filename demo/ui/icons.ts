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
  up: icon(svg`<path d="M10 16V4.500M5 9.200l5-4.700 5 4.700" />`),
  again: icon(svg`<path d="M15.6 10a5.6 5.6 0 1 1-1.7-4M14.4 2.8v3.6h-3.6" />`),
  alert: icon(svg`<path d="M10 3.2 17.3 16H2.7zM10 8v3.6M10 13.9v.1" />`),
  more: icon(svg`<path class="dot" d="M4.5 10h.01M10 10h.01M15.5 10h.01" />`),
  copy: icon(
    svg`<rect x="6.8" y="6.8" width="9.7" height="9.7" rx="1.8" /><path d="M13.2 3.5H5.3a1.8 1.8 0 0 0-1.8 1.8v7.9" />`,
  ),
  edit: icon(svg`<path d="m12.3 4.7 3 3L7 16l-3.6.6.6-3.6zM11 6l3 3" />`),
  pin: icon(svg`<path d="M7.2 3h5.6l-.7 5.2 2.6 2.9H5.3l2.6-2.9zM10 11.2V17" />`),
  archive: icon(svg`<path d="M3 4h14v3.4H3zM4.4 7.4V16h11.2V7.4M8 10.6h4" />`),
  trash: icon(svg`<path d="M3.8 5.6h12.4M8 5.4V3.3h4v2.1M5.3 5.8l.8 10.9h7.8l.8-10.9M8.5 9v4.5M11.5 9v4.5" />`),
  download: icon(svg`<path d="M10 3.2v9M6.2 8.7 10 12.5l3.8-3.8M3.8 16.4h12.4" />`),
  keyboard: icon(
    svg`<rect x="2.4" y="5" width="15.2" height="10" rx="1.8" /><path d="M5.6 8.3h.01M8.5 8.3h.01M11.4 8.3h.01M14.4 8.3h.01M6.5 11.8h7" />`,
  ),
  power: icon(svg`<path d="M10 3v6.4M5.8 5.3a6 6 0 1 0 8.4 0" />`),
  split: icon(svg`<rect x="2.8" y="4" width="14.4" height="12" rx="1.8" /><path d="M10 4.2v11.6" />`),
  offline: icon(
    svg`<path d="m3.2 3.2 13.6 13.6M2.8 8.3a10.600 10.600 0 0 1 4-2.4M10 5a10.600 10.600 0 0 1 7.200 3.300M5.600 11.300a6.600 6.600 0 0 1 3.300-1.800M12.400 9.900a6.600 6.600 0 0 1 2 1.400M10 15.200h.01" />`,
  ),
  tabs: icon(
    svg`<rect x="2.8" y="6.4" width="10.8" height="10.2" rx="1.6" /><path d="M6.5 3.6h9a1.7 1.7 0 0 1 1.7 1.7v8" />`,
  ),
};
