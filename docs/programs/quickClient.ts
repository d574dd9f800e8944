/** A client of one server, whose URL is the argument. */
// #region client
import { AsyncClient } from "@skein/client/AsyncClient"
import * as Http from "@skein/client/Http"

const client = await AsyncClient.connect(Http.transport({ url: process.argv[2] ?? "http://127.0.0.1:3000/mcp" }))
try {
  for (const { description, name } of await client.listTools()) console.log(`${name}: ${description}`)
  const { content } = await client.callTool("greet", { name: "Ada" })
  console.log(content)
} finally {
  await client.close()
}
// #endregion
