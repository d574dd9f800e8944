// #region workers
import { webHandler } from "skein/http"
import { greeter } from "./functions.ts"

const { handler } = webHandler(greeter, { allowedHosts: ["mcp.example.com"], stateless: true })

export default { fetch: (request: Request) => handler(request) }
// #endregion
