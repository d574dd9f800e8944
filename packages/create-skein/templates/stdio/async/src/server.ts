/** The server: its tools and resources. `main.ts` starts it. */
import { AsyncServer, VisibleError } from "skein"
import { z } from "zod"
import { convert, unitNames, units } from "./units.ts"

const digits = Number(process.env["DIGITS"] ?? 6)

const unit = z.enum(unitNames)

export const server = new AsyncServer({ name: "skein-template", version: "1.0.0" })

server.tool(
  "convert",
  {
    description: "Converts a value from one unit to another.",
    input: z.object({ value: z.number(), from: unit, to: unit }),
    output: z.object({ value: z.number(), unit }),
    annotations: { readOnlyHint: true }
  },
  async ({ from, to, value }) => {
    const converted = convert(value, from, to)
    if (converted === undefined) {
      // The model reads the message, and can call the tool again.
      throw new VisibleError(`${from} and ${to} are units of different kinds. Read units://all for the kinds`)
    }
    return { value: Number(converted.toPrecision(digits)), unit: to }
  }
)

server.resource(
  "units://all",
  { description: "All units with their kinds.", mimeType: "application/json" },
  async () => JSON.stringify(units)
)
