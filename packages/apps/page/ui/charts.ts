/** Draws charts as SVG, at the width of their place, with a legend for all and a table for screen readers. */
import type { NodeOf } from "../../src/ui/uiNode.ts"
import { element, visible } from "../ready.ts"
import { onWidth, tableOf } from "./table.ts"

type AxisChart = NodeOf<"bar"> | NodeOf<"line"> | NodeOf<"area">

const height = 240
const [top, right, bottom] = [10, 8, 24]
/** The width of a character of the labels, on average. */
const charWidth = 6.6
const maxLabelChars = 14

const svg = (
  name: string,
  attributes: { readonly [name: string]: string | number },
  ...children: ReadonlyArray<Node | string>
): SVGElement => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value))
  made.append(...children)
  return made
}

const colorOf = (at: number): string => `s${at % 8}`

const format = (value: number): string => value.toLocaleString(undefined, { maximumFractionDigits: 6 })

/** A short form of the numbers at the axis. */
const short = (value: number): string =>
  Math.abs(value) < 10_000
    ? format(value)
    : value.toLocaleString(undefined, { notation: "compact", maximumFractionDigits: 2 })

const clip = (text: string): string =>
  visible(text.length > maxLabelChars ? `${text.slice(0, maxLabelChars - 1)}…` : text)

/** The numbers at the axis: round ones, from the least to the greatest, with zero. */
const ticksOf = (values: ReadonlyArray<number>): ReadonlyArray<number> => {
  const [low, high] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0])
  const rough = (high - low || 1) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5, 10].find((factor) => power * factor >= rough) ?? 10)
  const [first, last] = [Math.floor(low / step), Math.max(Math.ceil(high / step), Math.floor(low / step) + 1)]
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)))
}

/** A shape, with a text that the browser shows below the pointer. */
const named = (text: string, shape: SVGElement): SVGElement => {
  shape.append(svg("title", {}, visible(text)))
  return shape
}

/** The shapes of a series. */
const shapesOf = (
  { series, type }: AxisChart,
  at: number,
  place: { readonly x: (at: number) => number; readonly y: (value: number) => number; readonly band: number },
  nameOf: (series: number, label: number) => string
): ReadonlyArray<SVGElement> => {
  const { band, x, y } = place
  const { values } = series[at]!
  if (type === "bar") {
    const width = band * 0.76 / series.length
    return values.map((value, label) =>
      named(
        nameOf(at, label),
        svg("rect", {
          x: x(label) - band * 0.38 + at * width,
          y: Math.min(y(value), y(0)),
          width: Math.max(0.5, width - (series.length > 1 ? 1 : 0)),
          height: Math.max(0.5, Math.abs(y(value) - y(0))),
          rx: Math.min(2, width / 4),
          fill: "currentColor"
        })
      )
    )
  }
  const points = values.map((value, label) => `${x(label)},${y(value)}`)
  const line = svg("polyline", { points: points.join(" "), fill: "none", stroke: "currentColor", "stroke-width": 2 })
  const ends = [`${x(0)},${y(0)}`, ...points, `${x(values.length - 1)},${y(0)}`]
  const area = type === "area"
    ? [svg("polygon", { points: ends.join(" "), fill: "currentColor", "fill-opacity": 0.2 })]
    : []
  const dots = values.map((value, label) =>
    named(
      nameOf(at, label),
      svg("circle", { cx: x(label), cy: y(value), r: values.length > 40 ? 1.5 : 3, fill: "currentColor" })
    )
  )
  return [...area, line, ...dots]
}

const drawAxes = (chart: AxisChart, width: number): SVGElement => {
  const { labels, series } = chart
  const ticks = ticksOf(series.flatMap(({ values }) => values))
  const [low, high] = [ticks[0]!, ticks.at(-1)!]
  const left = Math.max(...ticks.map((tick) => short(tick).length)) * charWidth + 10
  const band = (width - left - right) / Math.max(1, labels.length)
  const y = (value: number): number => top + (height - top - bottom) * (1 - (value - low) / (high - low))
  const x = (at: number): number => left + band * (at + 0.5)
  const longest = Math.max(1, ...labels.map((label) => clip(label).length)) * charWidth + 8
  const every = Math.max(1, Math.ceil(longest / band))
  const nameOf = (at: number, label: number): string => {
    const { name, values } = series[at]!
    return [labels[label]!, ...(name === "" ? [] : [name]), format(values[label]!)].join(", ")
  }
  return svg(
    "svg",
    { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    ...ticks.flatMap((tick) => [
      svg("line", { class: "axis", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      svg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, short(tick))
    ]),
    ...labels.flatMap((label, at) =>
      at % every === 0 ? [svg("text", { x: x(at), y: height - 6, "text-anchor": "middle" }, clip(label))] : []
    ),
    ...series.map((_, at) => svg("g", { class: colorOf(at) }, ...shapesOf(chart, at, { x, y, band }, nameOf))),
    svg("line", { class: "axis", x1: left, x2: width - right, y1: y(0), y2: y(0) })
  )
}

const shareOf = (value: number, total: number): string =>
  total === 0 ? "0%" : `${Math.round(value / total * 1_000) / 10}%`

const drawPie = ({ slices }: NodeOf<"pie">, width: number): SVGElement => {
  const size = Math.min(width, 220)
  const radius = size / 2 - 2
  const total = slices.reduce((sum, { value }) => sum + value, 0)
  let before = 0
  const point = (part: number): string => {
    const angle = part * 2 * Math.PI - Math.PI / 2
    return `${size / 2 + radius * Math.cos(angle)} ${size / 2 + radius * Math.sin(angle)}`
  }
  const parts = slices.map(({ label, value }, at) => {
    const [from, to] = [before / (total || 1), (before + value) / (total || 1)]
    before += value
    // An arc from a point to itself is empty, so the whole is a circle.
    const shape = to - from >= 1
      ? svg("circle", { cx: size / 2, cy: size / 2, r: radius })
      : svg("path", {
        d: `M ${size / 2} ${size / 2} L ${point(from)} A ${radius} ${radius} 0 ${to - from > 0.5 ? 1 : 0} 1 ${
          point(to)
        } Z`
      })
    shape.setAttribute("class", `slice ${colorOf(at)}`)
    shape.setAttribute("fill", "currentColor")
    return named(`${label}, ${format(value)} (${shareOf(value, total)})`, shape)
  })
  return svg("svg", { width: size, height: size, viewBox: `0 0 ${size} ${size}`, "aria-hidden": "true" }, ...parts)
}

const legendOf = (entries: ReadonlyArray<string>): HTMLElement =>
  element(
    "ul",
    { className: "legend" },
    ...entries.map((entry, at) =>
      element(
        "li",
        {},
        element("span", { className: `swatch ${colorOf(at)}` }),
        element("span", { className: "text", dir: "auto" }, visible(entry))
      )
    )
  )

/** Draws a chart. */
export const drawChart = (chart: AxisChart | NodeOf<"pie">): HTMLElement => {
  const place = element("div", {})
  const total = chart.type === "pie" ? chart.slices.reduce((sum, { value }) => sum + value, 0) : 0
  const entries = chart.type === "pie"
    ? chart.slices.map(({ label, value }) => `${label}: ${format(value)} (${shareOf(value, total)})`)
    : chart.series.length > 1
    ? chart.series.map(({ name }) => name)
    : []
  const legend = legendOf(entries)
  // The table has the same words.
  legend.setAttribute("aria-hidden", "true")
  const table = chart.type === "pie"
    ? { columns: ["Part", "Value"], rows: chart.slices.map(({ label, value }) => [label, value]) }
    : {
      columns: ["", ...chart.series.map(({ name }) => name)],
      rows: chart.labels.map((label, at) => [label, ...chart.series.map(({ values }) => values[at]!)])
    }
  return element(
    "figure",
    {},
    element("figcaption", { className: "text", dir: "auto" }, visible(chart.title)),
    onWidth(place, (width) => {
      if (width > 0) {
        place.replaceChildren(chart.type === "pie" ? drawPie(chart, width) : drawAxes(chart, width) as never)
      }
    }),
    legend,
    element("div", { className: "hidden" }, tableOf({ caption: chart.title, ...table }, true))
  )
}
