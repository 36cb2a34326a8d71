# A technician sets up a network: describe it, check it, try it with simulated motes, look after it.
moteloom init greenhouse --name greenhouse --motes 6 --quantity temperature
moteloom config check greenhouse/deployment.toml
moteloom doctor -c greenhouse/deployment.toml

# A station with simulated motes, sixty times as fast as the clock.
moteloom run --simulate greenhouse/simulated.scenario.toml --speed 60 --port 0 2> station.log &
until [ -s moteloom-data/url ]; do sleep 0.2; done

# Look around and leave a query running.
moteloom shell <<'END'
\d readings
\submit SELECT AVG(temperature) AS mean, COUNT(*) AS n FROM readings [NOW]
\l
END
moteloom query watch 1 --count 3

# Who is out there, how well connected, and what happened?
moteloom motes
moteloom topology
moteloom events --count 3
moteloom query stop 1

# A copy of everything, and the end.
moteloom backup greenhouse.backup
kill -INT $!
wait $!
