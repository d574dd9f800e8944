/** The page of the tool `sales`: a bar chart, and a form that calls `add_sale`. */
import * as View from "@skein/apps/View"
import type { Tools } from "../shop.ts"

type Sales = View.StructuredOf<Tools["sales"]>

const byId = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E
const note = byId("note")
const form = byId<HTMLFormElement>("add")
const [month, pots, submit] = [
  byId<HTMLSelectElement>("month"),
  byId<HTMLInputElement>("pots"),
  byId<HTMLButtonElement>("submit")
]
let shown: Sales | undefined

const view = View.make<Tools["sales"], Tools["addSale"]>({ name: "sales", version: "1.0.0" })

const svg = (name: string, attributes: Record<string, string | number>, text = ""): SVGElement => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value))
  element.textContent = text
  return element
}

const draw = (sales: Sales): void => {
  shown = sales
  const chart = document.getElementById("chart")!
  const [width, height, base, top] = [560, 220, 190, 24]
  const most = Math.max(1, ...sales.months.map(({ pots }) => pots))
  const step = width / sales.months.length
  chart.setAttribute("aria-label", `Pots of tea in ${sales.year}`)
  chart.replaceChildren(
    svg("line", { x1: 0, x2: width, y1: base, y2: base, class: "axis" }),
    ...sales.months.flatMap(({ name, pots }, at) => {
      const tall = (pots / most) * (base - top)
      const x = at * step + step / 2
      return [
        svg("rect", { x: x - step * 0.3, y: base - tall, width: step * 0.6, height: tall, rx: 4, class: "bar" }),
        svg("text", { x, y: base - tall - 7, class: "value" }, String(pots)),
        svg("text", { x, y: height - 8, class: "name" }, name.slice(0, 3))
      ]
    })
  )
  byId("title").textContent = `Tea sales ${sales.year}`
  byId("total").textContent = `${sales.months.reduce((sum, { pots }) => sum + pots, 0)} pots`
  if (month.options.length === 0) month.append(...sales.months.map(({ name }) => new Option(name)))
  submit.disabled = false
}

const say = (text: string, isError = false): void => {
  note.textContent = text
  note.classList.toggle("error", isError)
}

view.on("input", ({ year }) => {
  byId("title").textContent = `Tea sales ${year}`
})
view.on("result", ({ isError, structured, text }) => isError ? say(text, true) : draw(structured))
view.on("cancelled", (reason) => say(`The call was cancelled${reason === undefined ? "" : `: ${reason}`}`, true))

form.addEventListener("submit", async (event) => {
  event.preventDefault()
  if (shown === undefined) return
  submit.disabled = true
  try {
    const { structured } = await view.call("add_sale", {
      year: shown.year,
      month: month.value,
      pots: Number(pots.value)
    })
    draw(structured)
    say(`Added ${pots.value} pots to ${month.value}.`)
    await view.updateModelContext({ structuredContent: { sales: structured } })
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), true)
  } finally {
    submit.disabled = false
  }
})

byId("ask").addEventListener("click", () => {
  view.sendMessage(`Why did ${month.value} sell so well?`).catch((error: unknown) => say(String(error), true))
})

await view.connect()
