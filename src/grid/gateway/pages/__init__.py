"""The pages for people: functions from what is known to HTML. Pure; nothing here asks the grid. [spec webapi 10]"""
