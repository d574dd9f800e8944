/** The server: its tools and resources. `main.ts` starts it. */
import * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { convert, unitNames, units } from "./units.ts"

const digits = Number(process.env["DIGITS"] ?? 6)

/** A tagged error is a result with `isError`. The model reads the message, and can call the tool again. */
class OtherKind extends Data.TaggedError("OtherKind")<{ readonly message: string }> {}

const Unit = Schema.Literals(unitNames)

const conversion = Tool.layer(
  Tool.make("convert", {
    description: "Converts a value from one unit to another.",
    input: { value: Schema.Finite, from: Unit, to: Unit },
    output: { value: Schema.Finite, unit: Unit },
    annotations: { readOnlyHint: true }
  }),
  ({ from, to, value }) => {
    const converted = convert(value, from, to)
    return converted === undefined
      ? Effect.fail(
        new OtherKind({ message: `${from} and ${to} are units of different kinds. Read units://all for the kinds` })
      )
      : Effect.succeed({ value: Number(converted.toPrecision(digits)), unit: to })
  }
)

const list = Resource.layer(
  Resource.make("units://all", { description: "All units with their kinds.", mimeType: "application/json" }),
  Effect.succeed(JSON.stringify(units))
)

export const Server = McpServer.layer({ name: "skein-template", version: "1.0.0" }, conversion, list)
