import * as Content from "@skein/server/Content"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const png = Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10)

// #region content
const plot = Tool.layer(Tool.make("plot"), () =>
  Effect.succeed([
    Content.text("Sales of the year", { annotations: { audience: ["user"] } }),
    Content.image(png, "image/png"),
    Content.resource("sales://2026", "jan 3\nfeb 5", { mimeType: "text/plain" }),
    Content.resourceLink({ uri: "sales://2025", name: "last year" })
  ]))
// #endregion

const best = Tool.layer(Tool.make("best"), () => Effect.succeed({ month: "feb", sold: 5 }))

const sold = Tool.async(
  Tool.make("sold", { input: { months: Schema.Array(Schema.Finite) } }),
  ({ months }) => months.reduce((sum, month) => sum + month, 0)
)

const Totals = Schema.Struct({ total: Schema.Finite })

const totals = Tool.layer(Tool.make("totals", { output: Totals }), () =>
  Effect.succeed(Tool.result({
    structured: { total: 8 },
    content: [Content.text("8 sold, a good year"), Content.image(png, "image/png")],
    _meta: { "example.com/source": "ledger" }
  })))

export const Sales = McpServer.layer({ name: "sales", version: "1.0.0" }, plot, best, sold, totals)
