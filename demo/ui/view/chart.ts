import { AsyncDirective, directive } from "lit/async-directive.js";
import { ref } from "lit/directives/ref.js";
import { html, noChange, nothing, type TemplateResult } from "lit/html.js";
import type uPlot from "uplot";
import type { Bin } from "../../reader/state.js";
import { plural } from "../format.js";
import { icons } from "../icons.js";

/** What a bar says of itself. */
interface Bar {
  /** "12–14". */
  readonly range: string;
  readonly count: number;
}

type At = number | undefined;

/** Bars of a column's values: to look at, to point at, to walk with the arrow keys, and as a table. */
class Histogram extends AsyncDirective {
  #name = "";
  #label = "";
  #bins: readonly Bin[] = [];
  #bars: readonly Bar[] = [];
  /** The first of the highest. */
  #highest = 0;
  #at: At;
  /** For screen readers: the bar that a key went to. */
  #said = "";
  #tableOpen = false;
  #failed = false;
  #plot: Plot | undefined;

  override render(name: string, bins: readonly Bin[]): unknown {
    // The state is a new object after each of its changes, and most are about something else.
    if (name === this.#name && sameBins(bins, this.#bins)) return noChange;
    const format = numberFormat(largestOf(bins), 10 ** Math.floor(Math.log10(widthOf(bins)) - 1), 1e7);
    const highest = Math.max(...bins.map(({ count }) => count));
    this.#name = name;
    this.#bins = bins;
    this.#bars = bins.map(({ from, to, count }) => ({ range: rangeText(format, from, to), count }));
    this.#highest = bins.findIndex(({ count }) => count === highest);
    this.#label = this.#describe(format);
    this.#at = undefined;
    this.#said = "";
    this.#plot?.draw(bins);
    return this.#template();
  }

  #template(): TemplateResult {
    const at = this.#at ?? this.#highest;
    return html`<figure class="chart">
      ${
        this.#failed
          ? html`<p class="fine">The chart could not be loaded: the table has its figures.</p>`
          : html`<div
                class="chart-plot"
                role="img"
                tabindex="0"
                aria-label=${this.#label}
                ${ref(this.#mount)}
                @keydown=${this.#key}
                @focus=${this.#focus}
                @blur=${() => this.#point(undefined)}
              ></div>
              <p class="chart-readout" aria-hidden="true">
                ${this.#at === undefined ? html`<span class="fine">Highest</span> ` : nothing}${this.#text(at)}
              </p>
              <span class="sr-only" aria-live="polite">${this.#said}</span>`
      }
      <details class="part chart-table" ?open=${this.#failed} @toggle=${this.#toggled}>
        <summary>${icons.chevron}Table<span class="sr-only"> of ${this.#name}</span></summary>
        ${this.#tableOpen ? this.#table() : nothing}
      </details>
    </figure>`;
  }

  #describe(format: Intl.NumberFormat): string {
    const { from, count, to } = this.#bins[this.#highest] ?? { from: 0, count: 0, to: 0 };
    const first = this.#bins[0]?.from ?? 0;
    const last = this.#bins.at(-1)?.to ?? 0;
    return (
      `Histogram of ${this.#name}: ${plural(this.#bins.length, "bar")} ` +
      `from ${format.format(first)} to ${format.format(last)}, ` +
      `highest ${plural(count, "row")} between ${format.format(from)} and ${format.format(to)}`
    );
  }

  #table(): TemplateResult {
    return html`<table>
      <thead>
        <tr>
          <th scope="col">${this.#name}</th>
          <th scope="col">rows</th>
        </tr>
      </thead>
      <tbody>
        ${this.#bars.map(
          ({ range, count }) =>
            html`<tr>
              <th scope="row">${range}</th>
              <td>${count.toLocaleString("en")}</td>
            </tr>`,
        )}
      </tbody>
    </table>`;
  }

  #text(at: number): string {
    const bar = this.#bars[at];
    return bar ? `${bar.range}: ${plural(bar.count, "row")}` : "";
  }

  #point(at: At): void {
    if (at === this.#at) return;
    this.#at = at;
    this.#said = "";
    this.#plot?.mark(at);
    this.#update();
  }

  #update(): void {
    if (this.isConnected) this.setValue(this.#template());
  }

  readonly #mount = (host?: Element): void => {
    this.#plot?.destroy();
    this.#plot = undefined;
    if (!(host instanceof HTMLElement)) return;
    this.#plot = new Plot(host, {
      pointed: (at) => this.#point(at),
      failed: () => {
        this.#failed = true;
        this.#update();
      },
    });
    this.#plot.draw(this.#bins);
  };

  readonly #focus = ({ currentTarget }: FocusEvent): void => {
    // A mouse points by itself.
    if (currentTarget instanceof Element && currentTarget.matches(":focus-visible")) this.#point(this.#highest);
  };

  readonly #key = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const last = this.#bars.length - 1;
    const at = this.#at;
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: at === undefined ? last : Math.max(0, at - 1),
      ArrowRight: at === undefined ? 0 : Math.min(last, at + 1),
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.#point(target);
    this.#said = this.#text(target);
    this.#update();
  };

  readonly #toggled = ({ currentTarget }: Event): void => {
    this.#tableOpen = currentTarget instanceof HTMLDetailsElement && currentTarget.open;
    this.#update();
  };
}

const histogramDirective = directive(Histogram);

/** Nothing for values that are all the same: there is nothing to compare. */
export function histogram(name: string, bins: readonly Bin[]): unknown {
  return bins.length < 2 ? nothing : histogramDirective(name, bins);
}

interface PlotEvents {
  /** A mouse came to a bar, or went away from all. */
  readonly pointed: (at: At) => void;
  readonly failed: () => void;
}

interface Look {
  readonly text: string;
  readonly bars: string;
  readonly lines: string;
  readonly font: string;
  readonly fontSize: number;
}

/** A canvas knows no custom properties, so the style sheet gives the element's own ones to read. */
function lookOf(host: Element): Look {
  const { color, fill, stroke, fontFamily, fontSize } = getComputedStyle(host);
  const size = Math.round(Number.parseFloat(fontSize));
  return { text: color, bars: fill, lines: stroke, font: `${size}px ${fontFamily}`, fontSize: size };
}

/** Bars in an element while it is in sight: as large as the element, in its colours. */
class Plot {
  readonly #stopped = new AbortController();
  readonly #resized = new ResizeObserver(() => this.#fit());
  readonly #seen = new IntersectionObserver((entries) => this.#appear(entries.at(-1)?.isIntersecting === true));
  readonly #host: HTMLElement;
  readonly #events: PlotEvents;
  #inSight = false;
  #bins: readonly Bin[] = [];
  #look: Look;
  #chart: uPlot | undefined;
  #at: At;
  #hovered: At;

  constructor(host: HTMLElement, events: PlotEvents) {
    this.#host = host;
    this.#events = events;
    this.#look = lookOf(host);
    this.#resized.observe(host);
    this.#seen.observe(host);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(query).addEventListener("change", () => this.#recolour(), { signal: this.#stopped.signal });
    }
    const themed = new MutationObserver(() => this.#recolour());
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.#stopped.signal.addEventListener("abort", () => themed.disconnect(), { once: true });
  }

  draw(bins: readonly Bin[]): void {
    this.#bins = bins;
    this.#at = undefined;
    this.#chart?.setData(dataOf(bins));
  }

  mark(at: At): void {
    this.#at = at;
    const chart = this.#chart;
    if (!chart) return;
    const left = at === undefined ? 0 : chart.valToPos(at, "x");
    const right = at === undefined ? 0 : chart.valToPos(at + 1, "x");
    chart.setSelect({ left, top: 0, width: right - left, height: chart.over.clientHeight }, false);
  }

  destroy(): void {
    this.#stopped.abort();
    this.#resized.disconnect();
    this.#seen.disconnect();
    this.#inSight = false;
    this.#clear();
  }

  #clear(): void {
    this.#chart?.destroy();
    this.#chart = undefined;
    this.#hovered = undefined;
  }

  #fit(): void {
    const { clientWidth: width, clientHeight: height } = this.#host;
    if (width > 0 && height > 0) this.#chart?.setSize({ width, height });
  }

  #recolour(): void {
    this.#look = lookOf(this.#host);
    this.#chart?.redraw();
  }

  /** A table may have a hundred columns: only those in sight have a canvas. */
  async #appear(inSight: boolean): Promise<void> {
    this.#inSight = inSight;
    if (!inSight) {
      this.#clear();
      return;
    }
    try {
      const { default: Chart } = await import("uplot");
      if (!this.#inSight || this.#chart) return;
      this.#look = lookOf(this.#host);
      this.#chart = new Chart(this.#options(Chart), dataOf(this.#bins), this.#host);
      this.#chart.root.setAttribute("aria-hidden", "true");
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      console.warn("The charts could not be loaded.", error);
      this.#events.failed();
    }
  }

  #options(Chart: typeof uPlot): uPlot.Options {
    const text = (): string => this.#look.text;
    const lines = (): string => this.#look.lines;
    const { font, fontSize } = this.#look;
    const none = { show: false };
    const line = { stroke: lines, width: 1 };
    const ignored = (): null => null;
    return {
      width: this.#host.clientWidth,
      height: this.#host.clientHeight,
      padding: [fontSize / 2, () => Math.max(fontSize / 2, this.#overhang()), 0, 0],
      legend: none,
      // Along the bars, so the axes have their own ticks: uPlot's know neither 1e200 nor 1e-200.
      scales: {
        x: { time: false, range: () => [0, this.#bins.length] },
        y: { range: () => [0, peakOf(this.#bins)] },
      },
      series: [
        {},
        {
          width: 0,
          fill: () => this.#look.bars,
          points: none,
          paths: Chart.paths.bars!({ size: [1, Infinity], gap: 2 }),
        },
      ],
      axes: [
        {
          stroke: text,
          font,
          size: fontSize * 2,
          gap: 4,
          grid: none,
          ticks: { ...line, size: 4 },
          border: { ...line, show: true },
          splits: () => this.#ticks().map(({ at }) => at),
          values: () => this.#ticks().map(({ label }) => label),
        },
        {
          stroke: text,
          font,
          size: (_chart, labels: readonly string[] | null) => this.#widest(labels ?? []),
          gap: 6,
          grid: line,
          ticks: none,
          splits: (_chart, _axis, _from, to) => ticks(0, to, 4, 1).values,
          values: (_chart, counts) => {
            const format = numberFormat(counts.at(-1) ?? 0, 1, 1e5);
            return counts.map((count) => format.format(count));
          },
        },
      ],
      cursor: {
        x: false,
        y: false,
        points: none,
        bind: { mousedown: ignored, mouseup: ignored, click: ignored, dblclick: ignored },
      },
      hooks: {
        draw: [() => this.mark(this.#at)],
        setCursor: [
          ({ cursor }) => {
            const hovered = cursor.idx ?? undefined;
            // Also called after each drawing, when keys may have gone elsewhere.
            if (hovered === this.#hovered) return;
            this.#hovered = hovered;
            this.#events.pointed(hovered);
          },
        ],
      },
    };
  }

  /** Round values of the column, where they are along the bars: as many as have room. */
  #ticks(): readonly Tick[] {
    const wide = this.#host.clientWidth;
    const first = this.#bins[0]?.from ?? 0;
    const last = this.#bins.at(-1)?.to ?? 0;
    const width = widthOf(this.#bins);
    const largest = largestOf(this.#bins);
    for (let most = Math.max(1, Math.floor(wide / (this.#look.fontSize * 4))); ; most--) {
      const { step, values } = ticks(first, last, most, 0);
      const format = numberFormat(largest, step, 1e5);
      const found = values.map((value) => ({ at: (value - first) / width, label: format.format(value) }));
      const room = (step / (last - first)) * wide * 0.8;
      if (most === 1 || this.#widest(found.map(({ label }) => label)) <= room) return found;
    }
  }

  /** What the last label of the axis takes at the right of the bars. */
  #overhang(): number {
    const last = this.#ticks().at(-1);
    if (!last) return 0;
    return this.#widest([last.label]) / 2 - (1 - last.at / this.#bins.length) * this.#host.clientWidth * 0.8;
  }

  /** About as many pixels as the longest of the labels is wide, with some air. */
  #widest(labels: readonly string[]): number {
    return Math.max(2, ...labels.map(({ length }) => length)) * this.#look.fontSize * 0.62 + 8;
  }
}

interface Tick {
  /** In bars from the left. */
  readonly at: number;
  readonly label: string;
}

/** A bar's middle along the axis, and its height. */
const dataOf = (bins: readonly Bin[]): uPlot.AlignedData => {
  // A few among very many are still seen.
  const least = peakOf(bins) * 0.02;
  return [bins.map((_, at) => at + 0.5), bins.map(({ count }) => (count === 0 ? 0 : Math.max(least, count)))];
};

const peakOf = (bins: readonly Bin[]): number => Math.max(1, ...bins.map(({ count }) => count));

const largestOf = (bins: readonly Bin[]): number =>
  Math.max(...bins.flatMap(({ from, to }) => [Math.abs(from), Math.abs(to)]));

const widthOf = (bins: readonly Bin[]): number => ((bins.at(-1)?.to ?? 1) - (bins[0]?.from ?? 0)) / bins.length;

function sameBins(one: readonly Bin[], other: readonly Bin[]): boolean {
  if (one === other) return true;
  return (
    one.length === other.length &&
    one.every(({ from, to, count }, at) => {
      const bin = other[at];
      return from === bin?.from && to === bin.to && count === bin.count;
    })
  );
}

/** At most so many steps of 1, 2 or 5 times a power of ten, and where they are between two values. */
function ticks(from: number, to: number, most: number, leastStep: number): { step: number; values: number[] } {
  const wanted = Math.max(leastStep, (to - from) / most);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = ([1, 2, 5].find((factor) => factor * power >= wanted * 0.999) ?? 10) * power;
  const first = Math.ceil(from / step);
  const count = Math.floor(to / step) - first + 1;
  // What is not finite came of values at the end of what a number holds: no ticks then.
  const values = Array.from({ length: count <= most + 1 ? Math.max(0, count) : 0 }, (_, at) => (first + at) * step);
  return { step, values };
}

/** As many digits as tell values apart that are a step from each other; shortened from `short` on. */
function numberFormat(largest: number, step: number, short: number): Intl.NumberFormat {
  const exponent = Math.floor(Math.log10(step) + 1e-9);
  const digits = Math.min(15, Math.max(1, Math.floor(Math.log10(largest)) - exponent + 1)) || 1;
  if (largest >= 1e15 || exponent < -6) {
    return new Intl.NumberFormat("en", { notation: "scientific", maximumSignificantDigits: digits });
  }
  if (largest >= short) return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: digits });
  return new Intl.NumberFormat("en", { maximumFractionDigits: Math.max(0, -exponent) });
}

/** "12–14"; in words where a dash would be taken for a sign. */
function rangeText(format: Intl.NumberFormat, from: number, to: number): string {
  const ends = [format.format(from), format.format(to)];
  return ends.join(ends.some((end) => end.includes("-")) ? " to " : "–");
}
