import { AsyncServer, tool } from "skein"
import { Http, type Transport } from "skein/client"
import { z } from "zod"

// #region read
// `undefined` over stdio, and where the client sends no such header.
const locale = tool("locale", {}, (_, { header }) => header("accept-language") ?? "en")
// #endregion

// #region parameter
const input = z.object({ region: z.string().meta({ "x-mcp-header": "Region" }) })
const report = tool("report", { input }, ({ region }) => `All is well in ${region}`)
// #endregion

export const transportTo = (url: string): Transport => Http.transport({ url, headers: { "accept-language": "de" } })

export const regions = new AsyncServer({ name: "regions", version: "1.0.0" }).use(locale, report)
