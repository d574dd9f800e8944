// #region player
import { AsyncClient } from "skein/client"

const client = await AsyncClient.connect("npm run -s try -- scratchpad/dice.ts")
console.log(await client.listTools())
console.log(await client.callTool("roll", { sides: 6 }))
await client.close()
// #endregion
