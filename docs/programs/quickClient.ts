/** A client of one server, whose URL is the argument. */
// #region client
import { AsyncClient } from "skein/client"

const client = await AsyncClient.connect(process.argv[2] ?? "http://127.0.0.1:3000/mcp")
try {
  for (const { description, name } of await client.listTools()) console.log(`${name}: ${description}`)
  const { content } = await client.callTool("greet", { name: "Ada" })
  console.log(content)
} finally {
  await client.close()
}
// #endregion
