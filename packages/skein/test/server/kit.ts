/** Clients of servers in the same process. */
import { AsyncClient, type Options } from "@skein/client/AsyncClient"
import type { Transport as CoreTransport } from "@skein/runtime/Connection"
import type { AsyncServer, Transport } from "skein"

/** Connects a client to a transport of the package `skein`, and closes it after the function. */
export const withTransport = async <A>(
  transport: Transport,
  run: (client: AsyncClient) => Promise<A>,
  options?: Options
): Promise<A> => {
  const client = await AsyncClient.connect(transport as unknown as CoreTransport, options)
  try {
    return await run(client)
  } finally {
    await client.close()
  }
}

/** Connects a client to a server, and closes both after the function. */
export const withClient = <A>(
  server: AsyncServer,
  run: (client: AsyncClient) => Promise<A>,
  options?: Options
): Promise<A> => withTransport(server.transport(), run, options)

/** Calls a tool, and returns the text of its result. */
export const callText = async (client: AsyncClient, name: string, args?: object): Promise<string> => {
  const { content } = await client.callTool(name, args)
  return content.map((block) => block.type === "text" ? block.text : block.type).join("\n")
}
