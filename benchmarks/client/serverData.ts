/**
 * The tools of the server, and the checks that a response is complete and belongs to its call.
 */

export interface Report {
  readonly id: number
  readonly title: string
  readonly items: ReadonlyArray<{ readonly sku: string; readonly count: number; readonly price: number }>
}

const items = Array.from({ length: 8 }, (_, index) => ({ sku: `sku-${index}`, count: index + 1, price: 9.5 * index }))

/** The report with an id. */
export const report = <Id>(id: Id) => ({ id, title: "What was sold today", items })

const outputSchema = {
  type: "object",
  properties: {
    id: { type: "integer" },
    title: { type: "string" },
    items: {
      type: "array",
      items: {
        type: "object",
        properties: { sku: { type: "string" }, count: { type: "integer" }, price: { type: "number" } },
        required: ["sku", "count", "price"]
      }
    }
  },
  required: ["id", "title", "items"]
}

/** The tools that clients call. */
export const tools = [
  {
    name: "greet",
    description: "Greets a person by name",
    inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
  },
  ...["report", "invalid"].map((name) => ({
    name,
    description: "Reports what was sold",
    inputSchema: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
    outputSchema
  }))
]

/** The number of tools in the long list. */
export const longListSize = 100

/** The tools of the long list. */
export const longTools = Array.from({ length: longListSize }, (_, index) => ({
  name: `tool-${index}`,
  description: `Does thing number ${index}`,
  inputSchema: {
    type: "object",
    properties: { path: { type: "string" }, lines: { type: "integer" } },
    required: ["path", "lines"]
  }
}))

/** How long a listing may be cached, in milliseconds. */
export const ttlMs = 600_000

/** The text of a greeting. */
export const greeting = (turn: number | string): string => `Hello, n${turn}!`

export const checkGreeting = (turn: number, text: unknown): void => {
  if (text !== greeting(turn)) throw new Error(`call ${turn} returned ${JSON.stringify(text)?.slice(0, 200)}`)
}

export const checkReport = (turn: number, value: unknown): void => {
  const { id, items: sold } = value as Report
  if (id !== turn || sold.length !== items.length || sold[7]!.sku !== "sku-7" || sold[7]!.price !== items[7]!.price) {
    throw new Error(`report ${turn} is ${JSON.stringify(value)?.slice(0, 200)}`)
  }
}

export const checkTools = (listed: ReadonlyArray<{ readonly name: string }>): void => {
  if (listed.length !== longListSize || listed[longListSize - 1]!.name !== `tool-${longListSize - 1}`) {
    throw new Error(`${listed.length} tools instead of ${longListSize}`)
  }
}
