/** The server: its tools and resources. `main.ts` starts it. */
import { VisibleError } from "@skein/server/HandlerError"
import * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import { z } from "zod"
import { convert, unitNames, units } from "./units.ts"

const digits = Number(process.env["DIGITS"] ?? 6)

const unit = z.enum(unitNames)

const conversion = Tool.async(
  Tool.make("convert", {
    description: "Converts a value from one unit to another.",
    input: z.object({ value: z.number(), from: unit, to: unit }),
    output: z.object({ value: z.number(), unit }),
    annotations: { readOnlyHint: true }
  }),
  async ({ from, to, value }) => {
    const converted = convert(value, from, to)
    if (converted === undefined) {
      // The model reads the message, and can call the tool again.
      throw new VisibleError(`${from} and ${to} are units of different kinds. Read units://all for the kinds`)
    }
    return { value: Number(converted.toPrecision(digits)), unit: to }
  }
)

const list = Resource.async(
  Resource.make("units://all", { description: "All units with their kinds.", mimeType: "application/json" }),
  async () => JSON.stringify(units)
)

export const Server = McpServer.layer({ name: "skein-template", version: "1.0.0" }, conversion, list)
