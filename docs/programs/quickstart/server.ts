// #region server
import { AsyncServer } from "skein"
import { temperature } from "./src/temperature.ts"

new AsyncServer({ name: "weather", version: "1.0.0" }).use(temperature).runHttp({ port: 3000, health: true })
// #endregion
