"""Pages for people: functions from values to HTML. Pure; nothing here queries the grid. [spec webapi 10]"""
